/** A Worker that does nothing but count: `{ encoding, texts }` in, the count of each text out. For workerd.test.ts. */
import { loadEncoding, type EncodingName } from '../../src/tokenizer/encoding.ts';

export interface CountRequest {
  readonly encoding: EncodingName;
  readonly texts: readonly string[];
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { encoding, texts } = (await request.json()) as CountRequest;
    const { count } = await loadEncoding(encoding);
    return Response.json(texts.map(count));
  },
};
