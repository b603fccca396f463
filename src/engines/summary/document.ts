/**
 * The eight sections as text and back: headings in one order, bullets below them. Reads any text, writes only this form;
 * what stands in a bullet is not its concern.
 */

/** The sections that hold bullets, in their order. */
export const SECTIONS = [
  'goal',
  'constraints',
  'done',
  'inProgress',
  'blocked',
  'decisions',
  'actions',
  'next',
  'context',
  'files',
] as const;
export type Section = (typeof SECTIONS)[number];

/** Bullets by section, without their dashes, each of one line. */
export type Bullets = Readonly<Record<Section, readonly string[]>>;

const HEADINGS: Readonly<Record<Section, string>> = {
  goal: '## Goal',
  constraints: '## Constraints & Preferences',
  done: '## Progress\n### Done',
  inProgress: '### In Progress',
  blocked: '### Blocked',
  decisions: '## Key Decisions',
  actions: '## Actions Taken',
  next: '## Next Steps',
  context: '## Critical Context',
  files: '## Relevant Files',
};

const NONE = '(none)';

/** One record with a value for each section. */
export function bySection<T>(value: (section: Section) => T): Record<Section, T> {
  return Object.fromEntries(SECTIONS.map((section) => [section, value(section)])) as Record<Section, T>;
}

export function render(bullets: Bullets): string {
  return SECTIONS.map((section) => {
    const lines = bullets[section].length > 0 ? bullets[section].map((bullet) => `- ${bullet}`) : [NONE];
    return [HEADINGS[section], ...lines].join('\n');
  }).join('\n');
}

const SECTION_OF_TITLE: ReadonlyMap<string, Section> = new Map(
  SECTIONS.map((section) => [HEADINGS[section].replace(/^.*#+ /s, '').toLowerCase(), section]),
);

/** A longer line is text, whatever it begins with. */
const MAX_HEADING_CHARS = 100;

/**
 * The bullets of a summary, whoever wrote it. Sections go by their titles; what stands under another title, or under
 * none, is critical context. Lines that are no bullets become some.
 */
export function parse(text: string): Bullets {
  const bullets = bySection<string[]>(() => []);
  let section: Section = 'context';
  for (const line of text.split(/[\n\r\u2028\u2029]+/)) {
    const heading = line.length > MAX_HEADING_CHARS ? undefined : /^ {0,3}#{1,6} +(.+?)[ #:]*$/.exec(line)?.[1];
    if (heading !== undefined) {
      section = SECTION_OF_TITLE.get(heading.toLowerCase()) ?? (heading === 'Progress' ? 'done' : 'context');
      continue;
    }
    const bullet = line.replace(/^\s{0,40}(?:[-*+•]|\d{1,3}[.)])?(?:\s+\[[ xX]\])?\s+|^\s+/, '').trim();
    if (bullet !== '' && bullet !== NONE) bullets[section].push(bullet);
  }
  return bullets;
}

const FORM = SECTIONS.flatMap((section) => HEADINGS[section].split('\n'));

/** Whether a text has exactly the form that `render` writes. */
export function isSummary(text: string): boolean {
  const lines = text.split('\n');
  const headings = lines.filter((line) => line.startsWith('#'));
  return (
    headings.length === FORM.length &&
    headings.every((heading, index) => heading === FORM[index]) &&
    lines.every((line) => line.startsWith('#') || line.startsWith('- ') || line === NONE)
  );
}
