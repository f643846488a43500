import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { COLOR_COUNT } from '../model/color-slots';
import { dashOf } from './palette';

/**
 * The minimum distance by CIEDE2000 between colors of a palette. A distance of 1 is barely visible.
 */
const MIN_DISTANCE = 10;
/** The minimum distance between colors of processes and colors of GPUs. */
const MIN_PALETTE_DISTANCE = 8;
/** The minimum distances of the colors of processes and GPUs from the colors of alerts. */
const MIN_ALERT_DISTANCES = { warning: 15, critical: 15, notice: 10, good: 10 };

type Vector = [number, number, number];
type Matrix = [Vector, Vector, Vector];

/**
 * The matrices that simulate the strongest forms of color blindness, by Machado, Oliveira and
 * Fernandes (2009).
 */
const VISIONS: Record<string, Matrix> = {
  'nothing missing': [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};
const XYZ: Matrix = [
  [0.4124, 0.3576, 0.1805],
  [0.2126, 0.7152, 0.0722],
  [0.0193, 0.1192, 0.9505],
];

function multiply(matrix: Matrix, [a, b, c]: Vector): Vector {
  return matrix.map(([x, y, z]) => x * a + y * b + z * c) as Vector;
}

function toLinear(hex: string): Vector {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
  return parts.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  ) as Vector;
}

function luminance(hex: string): number {
  return multiply(XYZ, toLinear(hex))[1];
}

function contrastOf(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((one, other) => other - one) as [
    number,
    number,
  ];
  return (light + 0.05) / (dark + 0.05);
}

/** Returns a color after `filter: grayscale(1)`. */
function grayOf(hex: string): string {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)) as Vector;
  const gray = Math.round(0.2126 * r + 0.7152 * g + 0.0722 * b);
  return `#${gray.toString(16).padStart(2, '0').repeat(3)}`;
}

function toLab(rgb: Vector): Vector {
  const [x, y, z] = multiply(XYZ, rgb.map((part) => Math.min(1, Math.max(0, part))) as Vector);
  const f = (t: number): number => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  return [116 * f(y) - 16, 500 * (f(x / 0.9505) - f(y)), 200 * (f(y) - f(z / 1.089))];
}

/** Returns the distance of two colors by CIEDE2000 (Sharma, Wu and Dalal, 2005). */
function colorDistance([l1, a1, b1]: Vector, [l2, a2, b2]: Vector): number {
  const sin = (degrees: number): number => Math.sin((degrees * Math.PI) / 180);
  const cos = (degrees: number): number => Math.cos((degrees * Math.PI) / 180);
  const gray = (chroma: number): number => Math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7));
  const g = 1.5 - 0.5 * gray((Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2);
  const [c1, c2] = [Math.hypot(g * a1, b1), Math.hypot(g * a2, b2)];
  const hue = (a: number, b: number): number => ((Math.atan2(b, a) * 180) / Math.PI + 360) % 360;
  const [h1, h2] = [hue(g * a1, b1), hue(g * a2, b2)];
  const turn = ((h2 - h1 + 540) % 360) - 180;
  const h = h1 + turn / 2;
  const c = (c1 + c2) / 2;
  const t =
    1 - 0.17 * cos(h - 30) + 0.24 * cos(2 * h) + 0.32 * cos(3 * h + 6) - 0.2 * cos(4 * h - 63);
  const l = ((l1 + l2) / 2 - 50) ** 2;
  const lightness = (l2 - l1) / (1 + (0.015 * l) / Math.sqrt(20 + l));
  const chroma = (c2 - c1) / (1 + 0.045 * c);
  const hues = (2 * Math.sqrt(c1 * c2) * sin(turn / 2)) / (1 + 0.015 * c * t);
  const rotation = -2 * gray(c) * sin(60 * Math.exp(-((((h + 360) % 360) - 275) ** 2) / 625));
  return Math.sqrt(lightness ** 2 + chroma ** 2 + hues ** 2 + rotation * chroma * hues);
}

const css = readFileSync(new URL('style/base.css', import.meta.url), 'utf8');
const [light = '', dark = ''] = css.split("[data-gpumon-scheme='dark'] {");
const themes = [
  { name: 'light', rules: light, backgrounds: ['#ffffff', '#f6f8fa'] },
  { name: 'dark', rules: dark, backgrounds: ['#0d1117', '#151b23', '#212121'] },
];

function color(rules: string, name: string): string | undefined {
  return new RegExp(`--gpumon-${name}: (#[0-9a-f]{6});`).exec(rules)?.[1];
}

describe.each(themes)('colors of processes and GPUs, $name', ({ rules, backgrounds }) => {
  const series = (name: string): string[] =>
    Array.from({ length: COLOR_COUNT }, (_, i) => color(rules, `${name}-${i}`) ?? '');
  const colors = series('process');
  const gpus = series('gpu');
  const labOf = (hex: string): Vector => toLab(toLinear(hex));

  it.each(Object.entries(VISIONS))('colors differ for eyes with %s', (_, matrix) => {
    for (const palette of [colors, gpus]) {
      const seen = palette.map((one) => toLab(multiply(matrix, toLinear(one))));
      for (const [i, one] of seen.entries()) {
        for (const [k, other] of seen.slice(0, i).entries()) {
          expect(colorDistance(one, other), `${palette[i]} and ${palette[k]}`).toBeGreaterThan(
            MIN_DISTANCE,
          );
        }
      }
    }
  });

  it('palettes of processes and GPUs differ', () => {
    for (const one of colors) {
      for (const other of gpus) {
        expect(colorDistance(labOf(one), labOf(other)), `${one} and ${other}`).toBeGreaterThan(
          MIN_PALETTE_DISTANCE,
        );
      }
    }
  });

  it('colors differ from alert colors', () => {
    for (const [level, least] of Object.entries(MIN_ALERT_DISTANCES)) {
      const alert = color(rules, level) ?? '';
      for (const one of [...colors, ...gpus]) {
        expect(colorDistance(labOf(one), labOf(alert)), `${one} and ${level}`).toBeGreaterThan(
          least,
        );
      }
    }
  });

  it('colors contrast with background and text', () => {
    for (const one of [...colors, ...gpus]) {
      for (const background of backgrounds) {
        expect(contrastOf(one, background), `${one} on ${background}`).toBeGreaterThan(3);
      }
    }
    for (const [i, one] of colors.entries()) {
      const letters =
        color(`${light}${rules}`, `on-process-${i}`) ?? color(rules, 'on-process') ?? '';
      expect(contrastOf(letters, one), `${letters} on ${one}`).toBeGreaterThan(4.5);
      // Bars with outdated values are shown in gray, where the text must also be readable.
      expect(
        contrastOf(grayOf(letters), grayOf(one)),
        `${letters} on ${one} in gray`,
      ).toBeGreaterThan(4.5);
    }
  });
});

it('repeated colors differ by dashes or stripes', () => {
  const looks = Array.from(
    { length: 64 },
    (_, i) => `${i % COLOR_COUNT} ${dashOf(i).dash?.join() ?? ''}`,
  );
  expect(dashOf(COLOR_COUNT - 1)).toEqual({});
  expect(new Set(looks).size).toBe(64);
});
