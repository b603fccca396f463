/**
 * Words by which a sentence shows that it binds, decides, intends or reports failure. A minor signal beside position and
 * role, since no list knows every language. Plain character classes only: the runtime's Unicode version does not matter.
 */

const binding = [
  /\b(?:must|never|always|(?<!\b(?:I|we|you|they|who) )(?:don'?t|do not)|(?:you|it|we|they|everything) should|should(?:n'?t| not)|only|prefer|avoid|without|make sure|ensure|keep|required|needs? to|instead of|no more than|at least|at most|exactly|not to)\b/i,
  /必须|必需|不要|不能|不得|只能|只用|仅|禁止|避免|务必|应该|应当|需要|请勿|至少|最多|保持/,
  /ないで|なければ|必ず|べき|だけ|のみ|禁止|避け|以内|以上|以下|してください|使わず/,
  /하지 ?마|반드시|해야|만 사용|금지|없이|최소|최대/,
  /[Нн]ельзя|[Дд]олж[енн]|[Тт]олько|[Вв]сегда|[Нн]икогда|[Оо]бязательно|[Нн]ужно|[Бб]ез |[Нн]е (?:надо|нужно|используй|меняй|трогай|делай)|[Ии]збегай|[Нн]е более|[Нн]е менее/,
  /يجب|لا ت|فقط|دائم|أبدا|بدون|تجنب|ينبغي|على الأقل|ممنوع|لا يجوز/,
  /\b(?:debe|deben|nunca|siempre|solo|sólo|evita|sin|asegúrate|doit|jamais|toujours|seulement|sans|évite|muss|darf|nie|immer|nur|ohne|deve|sempre|apenas)\b/i,
];

const deciding = [
  /\b(?:decid(?:ed?|ing)|decision|instead|rather than|because|best (?:solution|option|approach|fix)|chose|chosen|go(?:ing)? with|opt(?:ed)? for|root cause|turns? out|the (?:problem|issue|bug|fix|cause) (?:is|was)|we(?:'ll| will) use|I(?:'ll| will) use|agreed|should use)\b/i,
  /决定|因为|改用|采用|而不是|原因是|选择/,
  /ことにし|ため、|代わりに|原因は|採用|決め/,
  /때문|대신|결정/,
  /[Рр]ешил|[Пп]отому что|[Вв]место|[Пп]оэтому|[Пп]ричин|[Вв]ыбрал/,
  /لأن|بدلا|قرر|السبب|اخترت/,
  /\b(?:porque|en lugar de|parce que|au lieu de|weil|stattdessen|entschied|decidi)/i,
];

const intending = [
  /\b(?:next|let me|let's|let us|I'll|I will|I'm going to|going to|need to|needs to|can (?:help|assist)|now I|remaining|left to|to ?do|want me to|would you like|shall I|should I|plan to)\b|^(?:Now|Then|First|Finally)\b/i,
  /接下来|下一步|现在|我将|我会|然后|还需要|待/,
  /次に|これから|続いて|今から|ます[。]?$/,
  /다음|이제|하겠/,
  /[Дд]алее|[Тт]еперь|[Сс]ледующ|[Сс]ейчас|[Оо]сталось|[Пп]ланиру/,
  /التالي|سوف|الآن|سأ|بعد ذلك|الخطوة/,
  /\b(?:ahora|siguiente|voy a|maintenant|ensuite|je vais|jetzt|als nächstes|agora|vou)\b/i,
];

const reporting = [
  /\b(?:done|fixed|added|updated|created|removed|ported|implemented|changed|replaced|moved|renamed|installed|configured|successful(?:ly)?|pass(?:es|ed)?|completed?|finished|works?|working|resolved|reproduced|found|authenticated|located|cancel+ed|returned|verified)\b/i,
  /已|完成|成功|修复了|添加了/,
  /ました|完了|済み|できた/,
  /했습니다|완료/,
  /[Гг]отово|[Сс]делал|[Ии]справ|[Дд]обав|[Оо]бнов|[Сс]озда|[Уу]дал|[Зз]аверш/,
  /تم |أضفت|أصلحت|أنشأت|اكتمل/,
  /\b(?:hecho|listo|terminé|fait|terminé|erledigt|fertig|feito|pronto)\b/i,
];

const matches = (signals: readonly RegExp[]) => (sentence: string) => signals.some((signal) => signal.test(sentence));

export const isBinding = matches(binding);
export const isDeciding = matches(deciding);
export const isIntending = matches(intending);
/** `It seems the file was not created` reports of nothing done. */
const UNDONE = /n't\b|\b(?:not|seems?|failed|unable|cannot|issue|error)\b/i;
const reports = matches(reporting);
export const isReporting = (sentence: string): boolean => reports(sentence) && !UNDONE.test(sentence);

export const isQuestion = (sentence: string): boolean => /[?？؟][)"'*”]?$/.test(sentence);

/** How the first line of a result looks that tells of a failure. */
const FAILURE =
  /^(?:(?:[-*•] )?(?:[A-Z]{1,5}\d{2,5}:? )?\S{0,80}(?:Error|Exception)\b|error\b|fatal\b|panic\b|npm (?:ERR!|error)|Traceback|FAIL(?:ED)?\b|Failed\b|failure\b|\{"(?:error|message)": ?"[^"]*(?:error|not found|fail|invalid|denied))|: (?:No such file or directory|command not found|Permission denied|error [A-Z]{2,}\d+: )/i;

export const isFailure = (line: string): boolean => FAILURE.test(line);
