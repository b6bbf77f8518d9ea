/** Shapes on a canvas, of about the same area at a size. */

export function circle(context, x, y, size) {
  context.beginPath();
  context.arc(x, y, size, 0, 2 * Math.PI);
}

export function square(context, x, y, size) {
  context.beginPath();
  context.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
}

export function triangle(context, x, y, size) {
  context.beginPath();
  context.moveTo(x, y - size * 1.2);
  context.lineTo(x + size * 1.1, y + size * 0.8);
  context.lineTo(x - size * 1.1, y + size * 0.8);
  context.closePath();
}

export function diamond(context, x, y, size) {
  context.beginPath();
  context.moveTo(x, y - size * 1.3);
  context.lineTo(x + size * 1.3, y);
  context.lineTo(x, y + size * 1.3);
  context.lineTo(x - size * 1.3, y);
  context.closePath();
}
