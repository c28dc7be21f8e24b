// Builds the page into build/web/dist: index.html, page.js and page.css, which refer to each other
// by relative addresses, since the page may be served below any path or stand in one file.
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

// What a browser has to fetch before it can show anything.
const MOST_BYTES = 250 * 1024;

function checkSize(): Plugin {
  return {
    name: "check-size",
    generateBundle(_, bundle) {
      const bytes = Object.values(bundle).reduce(
        (sum, part) => sum + gzipSync(part.type === "chunk" ? part.code : part.source).length, 0);
      this.info(`the page takes ${(bytes / 1024).toFixed(1)} KiB packed (at most ${MOST_BYTES / 1024})`);
      if (bytes > MOST_BYTES) this.error(`the page takes ${bytes} bytes packed, at most ${MOST_BYTES} are allowed`);
    },
  };
}

const atRoot = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// `vite build --mode made` builds dev/, the page over made data, for the benchmark.
export default defineConfig(({ mode }) => ({
  root: atRoot("."),
  base: "./",
  plugins: [checkSize()],
  cacheDir: atRoot("../build/web/cache"),
  build: {
    outDir: atRoot(mode === "made" ? "../build/web/made" : "../build/web/dist"),
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      input: atRoot(mode === "made" ? "dev/index.html" : "index.html"),
      output: {
        entryFileNames: "page.js",
        assetFileNames: "page[extname]",
        inlineDynamicImports: true,
      },
    },
  },
}));
