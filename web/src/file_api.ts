// Answers from data that stand in the page itself (report/file_dataset.ts).
import type { Api } from "./api";
import { LocalApi } from "./local_api";
import { FileDataset } from "./report/file_dataset";
import { success, type Result } from "./result";

export class FileApi extends LocalApi {
  readonly data: FileDataset;

  private constructor(data: FileDataset) {
    super(data);
    this.data = data;
  }

  // `text`: what stands in the element of the data.
  static async open(text: string): Promise<Result<FileApi>> {
    const data = await FileDataset.read(text);
    return data.ok ? success(new FileApi(data.value)) : data;
  }
}

// The only dataset of such a page.
export const FILE_DATASET = "0";

// The data of a page that stands in a file; null: a program serves the page.
export function fileDataOf(api: Api): FileDataset | null {
  return api instanceof FileApi ? api.data : null;
}
