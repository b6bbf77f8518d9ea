/** A canvas that is drawn sharp, and again when its size or the colours of the page change. */

export class Picture {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {(context: CanvasRenderingContext2D, width: number, height: number) => void} draw
   *     in CSS pixels
   */
  constructor(canvas, draw) {
    Object.assign(this, { canvas, draw, frame: 0, colours: new Map(), width: 0, height: 0 });
    new ResizeObserver(([{ contentRect }]) => {
      Object.assign(this, { width: contentRect.width, height: contentRect.height });
      this.now(); // as setting the size clears the canvas
    }).observe(canvas);
    for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) {
      matchMedia(query).addEventListener("change", () => {
        this.colours.clear();
        this.soon();
      });
    }
  }

  /** Draw with the next frame. */
  soon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.now();
    });
  }

  now() {
    const { canvas } = this;
    const ratio = devicePixelRatio || 1;
    if (!this.width || !this.height) return;
    const [width, height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (canvas.width !== width || canvas.height !== height)
      Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.draw(context, this.width, this.height);
  }

  /** Return a colour of the style sheet by its name. */
  colour(name) {
    if (!this.colours.has(name)) {
      this.colours.set(name, getComputedStyle(this.canvas).getPropertyValue(`--${name}`).trim());
    }
    return this.colours.get(name);
  }
}
