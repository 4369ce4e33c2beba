// node check-vectors.mjs <signature-vectors.json>: exits 1 and says where, when this implementation differs.
import { readFileSync } from 'node:fs'
import { canonicalise, framed, sign } from './snavio.mjs'

const { vectors } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const wrong = vectors.filter(vector => {
  const canonical = canonicalise(JSON.parse(vector.payload_json))
  const signed = framed(vector, canonical)
  const hmac = sign(Buffer.from(vector.secret_b64, 'base64'), signed)
  return canonical !== vector.canonical || signed !== vector.signed || hmac !== vector.hmac
})
for (const vector of wrong) console.error(`differs: ${vector.name}`)
console.log(`${vectors.length - wrong.length} of ${vectors.length} agree`)
process.exitCode = wrong.length || !vectors.length ? 1 : 0
