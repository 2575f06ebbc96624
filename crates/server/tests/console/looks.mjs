// What can be computed of a page's looks: nothing is wider than the screen, everything has a name, and every text
// stands out from what is behind it.

/** Complaints about the page as it is. */
export async function looks(page) {
  return page.evaluate(() => {
    const found = [];
    const name = (element) => {
      const text = (element.textContent ?? "").trim().slice(0, 40);
      return `<${element.tagName.toLowerCase()} class="${element.getAttribute("class") ?? ""}"> ${JSON.stringify(text)}`;
    };
    const isShown = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && element.getClientRects().length > 0;

    // Width.
    const wide = document.documentElement.scrollWidth > innerWidth;
    if (wide) found.push(`the page is ${document.documentElement.scrollWidth} wide on a screen of ${innerWidth}`);
    for (const box of document.querySelectorAll("main, .page, .scroller, .card, .side-list, .cell, .audit-row, form")) {
      if (isShown(box) && box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "hidden") found.push(`too wide: ${name(box)} ${box.scrollWidth} > ${box.clientWidth}`);
    }

    // Names.
    for (const element of document.querySelectorAll("a, button, input, select, textarea, [role=button], svg[role=img]")) {
      if (!isShown(element) || element.closest(".xterm")) continue;
      const labelled = element.labels?.length ? element.labels[0].textContent : "";
      const known = element.getAttribute("aria-label") || element.textContent?.trim() || labelled?.trim() || element.getAttribute("title");
      if (!known) found.push(`no name: ${name(element)}`);
    }
    if (!document.documentElement.lang) found.push("the page has no language");
    if (!document.title) found.push("the page has no title");
    const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
    for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) found.push(`two elements are called ${id}`);
    if (!document.querySelector("h1, h2")) found.push("the page has no heading");

    // Contrast.
    const colour = (text) => {
      const numbers = (text.match(/-?[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
      if (text.startsWith("color(srgb")) return [...numbers.slice(0, 3).map((part) => part * 255), numbers[3] ?? 1];
      return [numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0, numbers[3] ?? 1];
    };
    const light = ([r, g, b]) => {
      const [x, y, z] = [r, g, b].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const over = (top, below) => top.slice(0, 3).map((part, index) => part * top[3] + below[index] * (1 - top[3]));
    const behind = (element) => {
      const layers = [];
      for (let at = element; at; at = at.parentElement) {
        const background = colour(getComputedStyle(at).backgroundColor);
        if (background[3] > 0) layers.push(background);
        if (background[3] === 1) break;
      }
      return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const seen = new Set();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!element || !node.textContent.trim() || seen.has(element) || !isShown(element)) continue;
      if (element.closest(".xterm, .visually-hidden, .skip, :disabled")) continue;
      seen.add(element);
      const style = getComputedStyle(element);
      const ground = behind(element);
      const ink = element instanceof SVGElement ? colour(style.fill) : colour(style.color);
      const [a, b] = [light(over(ink, ground)), light(ground)].sort((left, right) => right - left);
      const ratio = (a + 0.05) / (b + 0.05);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      if (ratio < (large ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${name(element)}`);
    }
    return found;
  });
}
