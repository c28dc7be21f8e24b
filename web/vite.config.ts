// Builds the page into build/web/dist: index.html, page.js and page.css, which refer to each other
// by relative addresses, since the page may be served below any path or stand in one file.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const atRoot = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: atRoot("."),
  base: "./",
  cacheDir: atRoot("../build/web/cache"),
  build: {
    outDir: atRoot("../build/web/dist"),
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: "page.js",
        assetFileNames: "page[extname]",
        inlineDynamicImports: true,
      },
    },
  },
});
