// How a person does things: with a mouse, or with keys alone. The keyboard never asks where a thing is:
// it gets there by Tab, arrow keys and the keys of the help.
import assert from "node:assert/strict";

const MOST_TABS = 120;
const KEYS_OF_VIEWS = { Graph: "1", Outline: "2", List: "3", "First divergence": "f", Values: "v", Communication: "c", Trend: "t" };

export class Mouse {
  name = "mouse";

  constructor(page) {
    this.page = page;
  }

  press(locator) {
    return locator.click();
  }

  // Opens a row of a table, a list or a tree.
  open(locator) {
    return locator.dblclick();
  }

  view(title) {
    return this.page.getByRole("tab", { name: title, exact: true }).first().click();
  }

  choose(select, value) {
    return select.selectOption(value);
  }

  async type(box, text) {
    await box.click();
    await this.page.keyboard.insertText(text);
  }

  // A button, where the keyboard has a key.
  act(locator) {
    return locator.click();
  }

  async row(table, index) {
    await table.locator(`[aria-rowindex="${index + 2}"]`).click();
  }

  async openRow(table, index) {
    await table.locator(`[aria-rowindex="${index + 2}"]`).dblclick();
  }

  async select(name) {
    await this.view("Outline");
    await this.page.locator(`[role=tree]`).first().locator(`[role=treeitem][title="${name}"]`).click();
  }

  // A cell of a heat map by its place in the whole.
  async cell(canvas, x, y) {
    const box = await canvas.boundingBox();
    await this.page.mouse.click(box.x + x, box.y + y);
  }
}

export class Keyboard {
  name = "keyboard";

  constructor(page) {
    this.page = page;
    this.keys = page.keyboard;
  }

  // Moves the focus there; says so where it cannot be reached.
  async reach(locator) {
    await locator.waitFor();
    const wanted = await locator.elementHandle();
    for (let i = 0; i < MOST_TABS; i++) {
      if (await wanted.evaluate((element) => element === document.activeElement)) return;
      await this.keys.press("Tab");
    }
    assert.fail(`not reached by Tab: ${await locator.evaluate((element) => element.outerHTML.slice(0, 200))}`);
  }

  async press(locator) {
    await this.reach(locator);
    await this.keys.press("Enter");
  }

  open(locator) {
    return this.press(locator);
  }

  async view(title) {
    const key = KEYS_OF_VIEWS[title];
    await this.leave();
    if (key) await this.keys.press(key);
    else await this.press(this.page.getByRole("tab", { name: title, exact: true }).first());
  }

  // Out of a box that takes keys for itself.
  async leave() {
    await this.page.evaluate(() => {
      const at = document.activeElement;
      if (at instanceof HTMLElement && at.closest("dialog") === null) at.blur();
    });
  }

  async choose(select, value) {
    await this.reach(select);
    const at = await select.evaluate((element, wanted) => [...element.options].findIndex((each) => each.value === wanted) - element.selectedIndex, value);
    for (let i = 0; i < Math.abs(at); i++) await this.keys.press(at > 0 ? "ArrowDown" : "ArrowUp");
  }

  async type(box, text) {
    if ((await box.getAttribute("id")) === "query") {
      await this.leave();
      await this.keys.press("/");
    } else {
      await this.reach(box);
    }
    await this.keys.insertText(text);
  }

  async act(_, key) {
    await this.leave();
    await this.keys.press(key);
  }

  async row(table, index) {
    await this.reach(table);
    await this.keys.press("Home");
    for (let i = 0; i < index; i++) await this.keys.press("ArrowDown");
  }

  async openRow(table, index) {
    await this.row(table, index);
    await this.keys.press("Enter");
  }

  async select(name) {
    await this.leave();
    await this.keys.press("g");
    await this.keys.insertText(name);
    await this.page.locator("#goto-list").getByRole("option", { name }).first().waitFor();
    await this.keys.press("Enter");
  }

  async cell(canvas, _x, _y, down = 0, across = 0) {
    await this.reach(canvas);
    for (let i = 0; i < down; i++) await this.keys.press("ArrowDown");
    for (let i = 0; i < across; i++) await this.keys.press("ArrowRight");
  }
}
