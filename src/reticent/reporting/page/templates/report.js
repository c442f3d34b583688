"use strict";
// Reads values in the drawings: by pointer, or with the arrow keys. The page is complete without it.
(() => {
  const parts = JSON.parse(document.getElementById("numbers").textContent);
  const add = (parent, tag, name) => {
    const element = parent.appendChild(document.createElement(tag));
    element.className = name;
    return element;
  };
  const shown = (value, { factor, digits }) =>
    (factor * value).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace(/^-(?=[0.,]*$)/, "").replace("-", "−");
  const band = (mean, reach, scale) => {
    const ends = [mean - reach, mean + reach].map((end) => Math.min(Math.max(end, scale.low ?? end), scale.high ?? end));
    return `${ends.map((end) => shown(end, scale)).join(" to ")}${scale.unit}`;
  };
  const percent = (share) => `${Number((100 * share).toPrecision(share > 0.1 ? 2 : 1))} %`;
  const within = (value, most) => Math.min(Math.max(value, 0), most);

  for (const plot of document.querySelectorAll(".plot")) {
    const { output, classes, panels, boxes } = parts[plot.dataset.part];
    const places = boxes[plot.dataset.width];
    const layer = add(plot, "div", "layer");
    const cross = add(layer, "div", "cross");
    const spot = add(layer, "div", "spot");
    const reading = document.createElement("p");
    reading.className = "reading small";
    reading.setAttribute("aria-live", "polite");
    reading.textContent = "Point at the drawing to read its values, or use the arrow keys and Page Up, Page Down.";
    reading.classList.add(plot.dataset.width);
    plot.after(reading);
    layer.tabIndex = 0;
    layer.setAttribute("role", "group");
    layer.setAttribute("aria-label", "Values in the drawing");
    cross.hidden = spot.hidden = true;
    let now = { panel: 0, index: panels[0].at.map((at) => (at.length - 1) >> 1) };

    const tell = () => {
      const { panel, index } = now;
      const { names, at, said, ends = [], inset = 0, scale, curves, mean, known, spread, likeliest, chances, chances_of, low, high } = panels[panel];
      const [left, top, right, bottom] = places[panel];
      const i = index.length > 1 ? index[1] * at[0].length + index[0] : index[0];
      const share = index.map((one, k) => one / (at[k].length - 1));
      const across = `${100 * (left + (inset + share[0] * (1 - 2 * inset)) * (right - left))}%`;
      cross.hidden = index.length > 1;
      spot.hidden = !cross.hidden;
      cross.style.left = spot.style.left = across;
      cross.style.top = `${100 * top}%`;
      cross.style.height = `${100 * (bottom - top)}%`;
      if (index.length > 1) spot.style.top = `${100 * (bottom - share[1] * (bottom - top))}%`;
      const where = names.map((name, k) => `${name} ${said[k][index[k]]}`).join(", ");
      const nobody = ends.some(([first, last], k) => at[k][index[k]] < first || at[k][index[k]] > last);
      const guess = nobody ? " A guess: hardly any records are there." : "";
      if (curves) {
        const each = curves.map((one) => classes
          ? `${one.level} ${percent(one.chance[i])} (95 % band ${percent(one.low[i])} to ${percent(one.high[i])})`
          : `${one.level} ${shown(one.mean[i], scale)}${scale.unit} (95 % band ${band(one.mean[i], one.known[i], scale)})`);
        const what = classes ? `the chance of ${classes[chances_of]}` : `the ${scale.factor === 100 ? "rate" : "mean"} of ${output}`;
        reading.textContent = `At ${where} ${what} is: ${each.join("; ")}.${guess}`;
        return;
      }
      if (classes) {
        const others = likeliest.slice(1).map((one, k) => `${classes[one[i]]} ${percent(chances[k + 1][i])}`).join(", ");
        reading.textContent =
          `At ${where}: ${classes[likeliest[0][i]]} ${percent(chances[0][i])} (95 % band ${percent(low[i])} to ${percent(high[i])}), ${others}.`;
        return;
      }
      const rate = scale.factor === 100;
      const single = spread && !rate ? `; 95 % of ${output} lies in ${band(mean[i], spread[i], scale)}` : "";
      reading.textContent =
        `At ${where} the ${rate ? "rate" : "mean"} of ${output} is ${shown(mean[i], scale)}${scale.unit} (95 % band ${band(mean[i], known[i], scale)})${single}.${guess}`;
    };

    const point = (event) => {
      const box = layer.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width;
      const y = (event.clientY - box.top) / box.height;
      const panel = places.findIndex(([left, top, right, bottom]) => x >= left && x <= right && y >= top && y <= bottom);
      if (panel < 0) return;
      const [left, top, right, bottom] = places[panel];
      const { at, inset = 0 } = panels[panel];
      const share = [within(((x - left) / (right - left) - inset) / (1 - 2 * inset), 1), (bottom - y) / (bottom - top)];
      now = { panel, index: at.map((one, k) => Math.round(share[k] * (one.length - 1))) };
      tell();
    };
    layer.addEventListener("pointermove", point);
    layer.addEventListener("pointerdown", point);
    layer.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [-1, 0, 0], ArrowRight: [1, 0, 0], ArrowDown: [0, -1, 0], ArrowUp: [0, 1, 0], PageUp: [0, 0, -1], PageDown: [0, 0, 1] };
      const step = steps[event.key];
      if (!step) return;
      event.preventDefault();
      const panel = within(now.panel + step[2], panels.length - 1);
      const before = panel === now.panel ? now.index : panels[panel].at.map((at) => (at.length - 1) >> 1);
      now = { panel, index: before.map((one, k) => within(one + step[k], panels[panel].at[k].length - 1)) };
      tell();
    });
  }
})();
