"use strict";
// Draws the report from the JSON in #data; its shape is that of report_data.hpp.

const data = JSON.parse(document.getElementById("data").textContent);
const content = document.getElementById("content");
const svgNamespace = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes, ...children) {
  const made = document.createElementNS(svgNamespace, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A column: title, value(row), show(value) if not as it is, warn(value) if it may be marked.
function cell(column, row) {
  const value = column.value(row);
  const shown = column.show ? column.show(value) : String(value);
  const marks = [];
  if (typeof value === "number") marks.push("number");
  if (column.warn && column.warn(value)) marks.push("warn");
  return element("td", marks.length ? { class: marks.join(" ") } : {}, shown);
}

function compare(left, right) {
  return typeof left === "number" ? left - right : String(left).localeCompare(String(right));
}

// A table that a click on a title sorts, and that the field above it filters.
function table(columns, rows, name) {
  const body = element("tbody");
  const filter = element("input", { type: "search", placeholder: "filter", "aria-label": `filter ${name}` });
  let order = null;
  let ascending = true;
  const fill = () => {
    const wanted = filter.value.toLowerCase();
    const shown = rows.filter((row) =>
      columns.some((column) => String(column.value(row)).toLowerCase().includes(wanted)));
    if (order) {
      shown.sort((a, b) => (ascending ? 1 : -1) * compare(order.value(a), order.value(b)));
    }
    body.replaceChildren(...shown.map((row) =>
      element("tr", {}, ...columns.map((column) => cell(column, row)))));
  };
  const titles = columns.map((column) => {
    const button = element("button", { type: "button" }, column.title);
    button.addEventListener("click", () => {
      ascending = order === column ? !ascending : true;
      order = column;
      fill();
    });
    const isNumber = rows.length > 0 && typeof column.value(rows[0]) === "number";
    return element("th", isNumber ? { class: "number" } : {}, button);
  });
  filter.addEventListener("input", fill);
  fill();
  return element("div", { class: "scroll" }, filter,
    element("table", { id: name }, element("thead", {}, element("tr", {}, ...titles)), body));
}

const fixed = (digits) => (value) => value.toFixed(digits);
const kernelColumns = [
  { title: "kernel", value: (k) => k.name },
  { title: "target", value: (k) => k.arch },
  { title: "registers", value: (k) => k.registers },
  { title: "spilled bytes", value: (k) => k.spill_store_bytes + k.spill_load_bytes, warn: (v) => v > 0 },
  { title: "static shared", value: (k) => k.static_shared_bytes },
  { title: "dynamic shared", value: (k) => k.dynamic_shared_bytes },
  { title: "cubin KB", value: (k) => k.cubin_bytes / 1024, show: fixed(1) },
  { title: "compile ms", value: (k) => k.compile_milliseconds, show: fixed(0) },
  { title: "key", value: (k) => k.key.slice(0, 12) },
  { title: "config", value: (k) => configText(k) },
];

function configText(kernel) {
  const config = typeof kernel.config === "string" ? JSON.parse(kernel.config) : kernel.config;
  return Object.entries(config).filter(([key]) => key !== "kernel")
    .map(([key, value]) => `${key}=${value}`).join(" ");
}

const sourceText = (kernel) =>
  kernel.files.map((file) => `// ---- ${file.name}\n${data.texts[file.text]}`).join("\n");

// One kernel's lines; those that the other kernel does not have are marked.
function sourceLines(text, otherText) {
  const others = new Set(otherText.split("\n"));
  return text.split("\n").map((line) =>
    element("code", others.has(line) ? {} : { class: "other" }, line || " "));
}

function sources(kernels) {
  const choices = () => kernels.map((kernel, index) =>
    element("option", { value: index }, `${kernel.name} ${kernel.arch} ${kernel.key.slice(0, 12)} ${configText(kernel)}`));
  const sides = [0, Math.min(1, kernels.length - 1)].map((index, side) => {
    const select = element("select", { "aria-label": side ? "right kernel" : "left kernel" }, ...choices());
    select.value = index;
    return { select, text: element("pre", { tabindex: 0 }) };
  });
  const fill = () => {
    const texts = sides.map((side) => sourceText(kernels[side.select.value]));
    sides[0].text.replaceChildren(...sourceLines(texts[0], texts[1]));
    sides[1].text.replaceChildren(...sourceLines(texts[1], texts[0]));
  };
  for (const side of sides) side.select.addEventListener("change", fill);
  fill();
  return element("div", { class: "sources", id: "sources" },
    ...sides.map((side) => element("div", {}, side.select, side.text)));
}

const rowColumns = [
  { title: "case", value: (r) => r.case },
  { title: "us", value: (r) => r.median_us, show: fixed(1) },
  { title: "min us", value: (r) => r.min_us, show: fixed(1) },
  { title: "TFLOP/s", value: (r) => r.tflops, show: fixed(1) },
  { title: "GB/s", value: (r) => r.gbps, show: fixed(0) },
  { title: "FLOP/byte", value: (r) => intensity(r), show: fixed(1) },
  { title: "% of roofline", value: (r) => r.roofline_percent, show: fixed(1) },
];

const intensity = (row) => (row.gbps > 0 ? (row.tflops * 1000) / row.gbps : 0);

// Speed over arithmetic intensity, both logarithmic, under the card's two ceilings.
function roofline(run, index) {
  const width = 900, height = 420, left = 60, bottom = 40, top = 10, right = 20;
  const points = run.rows.filter((row) => row.tflops > 0 && row.gbps > 0);
  if (points.length === 0) return element("p", { class: "note" }, "no case has both FLOPs and bytes");
  const ridge = (run.peak.tflops * 1000) / run.peak.gbps;
  const xs = points.map(intensity).concat(ridge);
  const ys = points.map((row) => row.tflops).concat(run.peak.tflops);
  const floorLog = (value) => Math.floor(Math.log10(value));
  const [x0, x1] = [floorLog(Math.min(...xs)), floorLog(Math.max(...xs)) + 1];
  const [y0, y1] = [floorLog(Math.min(...ys)), floorLog(Math.max(...ys)) + 1];
  const x = (value) => left + ((Math.log10(value) - x0) / (x1 - x0)) * (width - left - right);
  const y = (value) => height - bottom - ((Math.log10(value) - y0) / (y1 - y0)) * (height - bottom - top);
  const plot = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    id: `roofline-${index}`, "aria-label": `roofline of ${run.card}` });
  for (let power = x0; power <= x1; ++power) {
    const at = x(10 ** power);
    plot.append(drawn("line", { class: "grid", x1: at, x2: at, y1: top, y2: height - bottom }),
      drawn("text", { x: at, y: height - bottom + 16, "text-anchor": "middle" }, String(10 ** power)));
  }
  for (let power = y0; power <= y1; ++power) {
    const at = y(10 ** power);
    plot.append(drawn("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }),
      drawn("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, String(10 ** power)));
  }
  const memory = (flopsPerByte) => (flopsPerByte * run.peak.gbps) / 1000;
  const start = Math.max(10 ** x0, (10 ** y0 * 1000) / run.peak.gbps);
  plot.append(drawn("polyline", { class: "ceiling", points:
    `${x(start)},${y(memory(start))} ${x(ridge)},${y(run.peak.tflops)} ${x(10 ** x1)},${y(run.peak.tflops)}` }));
  const marks = drawn("g", { class: "points" });
  points.forEach((row, number) => marks.append(
    drawn("circle", { cx: x(intensity(row)), cy: y(row.tflops), r: 5,
      fill: `hsl(${(number * 360) / points.length} 65% 50%)` },
      drawn("title", {}, `${row.case}: ${row.tflops.toFixed(1)} TFLOP/s, ${row.gbps.toFixed(0)} GB/s`))));
  plot.append(marks,
    drawn("text", { x: (width + left) / 2, y: height - 4, "text-anchor": "middle" }, "FLOP per byte"),
    drawn("text", { x: 14, y: height / 2, transform: `rotate(-90 14 ${height / 2})`, "text-anchor": "middle" }, "TFLOP/s"));
  return plot;
}

function draw() {
  const parts = [];
  if (data.cache) {
    const { directory, kernels, damaged, total_bytes: bytes } = data.cache;
    parts.push(`${kernels.length} kernels, ${(bytes / 1048576).toFixed(1)} MiB in ${directory}`);
    content.append(element("h2", {}, "Kernels in the cache"), table(kernelColumns, kernels, "kernels"));
    if (damaged.length > 0) {
      content.append(element("h2", {}, "Damaged entries"), table([
        { title: "key", value: (entry) => entry.key },
        { title: "reason", value: (entry) => entry.reason },
        { title: "detail", value: (entry) => entry.detail }], damaged, "damaged"));
    }
    if (kernels.length > 0) content.append(element("h2", {}, "Sources side by side"), sources(kernels));
  }
  data.runs.forEach((run, index) => {
    parts.push(`${run.rows.length} cases on ${run.card} (${run.file})`);
    content.append(element("h2", {}, `${run.file}: ${run.card}`),
      element("p", { class: "note" },
        `ceilings: ${run.peak.tflops.toFixed(0)} TFLOP/s, ${run.peak.gbps.toFixed(0)} GB/s; hover over a point for its case`),
      roofline(run, index), table(rowColumns, run.rows, `run-${index}`));
  });
  document.getElementById("summary").textContent = `${parts.join(" · ")} · attnjit ${data.version}`;
  document.body.dataset.state = "drawn";
}

draw();
