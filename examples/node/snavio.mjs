// A Snavio producer in JavaScript with nothing but what Node.js 20 brings: what docs/reference/signature-vectors.md
// promises other languages, kept. Small on purpose: it sends one batch and does not renew, linger or retry.
import { createHash, createHmac, randomUUID } from 'node:crypto'

/** The RFC 8785 form of a JSON value. ECMAScript's own number and string forms are the canonical ones. */
export function canonicalise (value) {
  if (Array.isArray(value)) return `[${value.map(canonicalise).join(',')}]`
  if (value !== null && typeof value === 'object') {
    // sort() compares UTF-16 code units, which is what the RFC asks for.
    const names = Object.keys(value).sort()
    return `{${names.map(name => `${canonicalise(name)}:${canonicalise(value[name])}`).join(',')}}`
  }
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('a number is not finite')
  if (typeof value === 'string' && !value.isWellFormed()) throw new TypeError('a string holds a lone surrogate')
  const text = JSON.stringify(value)
  if (text === undefined) throw new TypeError(`${typeof value} is not a JSON value`)
  return text
}

/** What is signed: seven parts, one line feed between them. */
export function framed ({ version_id: version, id, timestamp, target, command }, payload) {
  return ['SNAVIO1', version, id, timestamp, target, command, payload].join('\n')
}

/** The signature, in lower-case hex. */
export function sign (secret, signed) {
  return createHmac('sha256', secret).update(signed, 'utf8').digest('hex')
}

/** The `Detail` of a command event. */
export function signedDetail (key, target, command, payload, { id = randomUUID(), now = new Date() } = {}) {
  const canonical = canonicalise(payload)
  const parts = { version_id: key.version_id, id, timestamp: now.toISOString(), target, command }
  const hmac = sign(Buffer.from(key.secret_b64, 'base64'), framed(parts, canonical))
  const metadata = { id, timestamp: parts.timestamp, type: 'snavio.command-sent', version_id: key.version_id, hmac }
  return `{"metadata":${JSON.stringify(metadata)},"command":{"target":${JSON.stringify(target)},` +
    `"name":${JSON.stringify(command)},"payload":${canonical}}}`
}

/** The tenant's configuration, with its keys. */
export async function tenantConfig (url, token) {
  const answer = await fetch(new URL('/api/v1/tenant-config', url), { headers: { authorization: `Bearer ${token}` } })
  if (!answer.ok) throw new Error(`tenant-config answered ${answer.status}`)
  return answer.json()
}

/** The key to sign with now. */
export function currentKey (config, source) {
  const service = config.services.find(service => service.source === source)
  if (!service) throw new Error(`${source} is not a service of ${config.tenant}`)
  return service.keys.find(key => key.state === 'current') ?? service.keys.at(-1)
}

/** Credentials of the emit role, assumed under the sender's own role name. */
export async function assumeEmitRole (aws, roleArn) {
  const identity = await call(aws, 'sts', { Action: 'GetCallerIdentity', Version: '2011-06-15' })
  const [kind, ...names] = between(identity, 'Arn').split(':').at(-1).split('/')
  const answer = await call(aws, 'sts', {
    Action: 'AssumeRole',
    Version: '2011-06-15',
    RoleArn: roleArn,
    RoleSessionName: kind === 'assumed-role' ? names[0] : names.at(-1)
  })
  return {
    ...aws,
    accessKeyId: between(answer, 'AccessKeyId'),
    secretAccessKey: between(answer, 'SecretAccessKey'),
    sessionToken: between(answer, 'SessionToken')
  }
}

/** Put up to ten details on the bus. */
export async function putEvents (aws, bus, source, details) {
  const entries = details.map(detail => (
    { EventBusName: bus, Source: source, DetailType: 'snavio.command-sent', Detail: detail }))
  const answer = JSON.parse(await call(aws, 'events', { Entries: entries }, 'AWSEvents.PutEvents'))
  const failed = answer.Entries.find(entry => entry.ErrorCode)
  if (failed) throw new Error(`${failed.ErrorCode}: ${failed.ErrorMessage}`)
  return answer.Entries.map(entry => entry.EventId)
}

/** One request to AWS: JSON with a target, or else a query. Signature Version 4, single-chunk POST. */
async function call (aws, service, body, target) {
  const url = new URL(aws.endpoint ?? `https://${service}.${aws.region}.amazonaws.com/`)
  const text = target ? JSON.stringify(body) : new URLSearchParams(body).toString()
  const stamp = new Date().toISOString().replace(/[-:]|\.\d{3}/g, '')
  const headers = {
    'content-type': target ? 'application/x-amz-json-1.1' : 'application/x-www-form-urlencoded; charset=utf-8',
    host: url.host,
    'x-amz-date': stamp,
    ...(aws.sessionToken && { 'x-amz-security-token': aws.sessionToken }),
    ...(target && { 'x-amz-target': target })
  }
  const names = Object.keys(headers).sort()
  const hash = data => createHash('sha256').update(data).digest('hex')
  const canonical = ['POST', url.pathname, '', ...names.map(name => `${name}:${headers[name]}`), '', names.join(';'), hash(text)]
  const scope = [stamp.slice(0, 8), aws.region, service, 'aws4_request']
  const mac = (key, data) => createHmac('sha256', key).update(data).digest()
  const key = scope.reduce(mac, `AWS4${aws.secretAccessKey}`)
  const toSign = ['AWS4-HMAC-SHA256', stamp, scope.join('/'), hash(canonical.join('\n'))].join('\n')
  headers.authorization = `AWS4-HMAC-SHA256 Credential=${aws.accessKeyId}/${scope.join('/')}, ` +
    `SignedHeaders=${names.join(';')}, Signature=${mac(key, toSign).toString('hex')}`
  delete headers.host // fetch sets it itself
  const answer = await fetch(url, { method: 'POST', headers, body: text })
  const said = await answer.text()
  if (!answer.ok) throw new Error(`${service} answered ${answer.status}: ${said.slice(0, 300)}`)
  return said
}

function between (xml, tag) {
  return xml.match(new RegExp(`<${tag}>([^<]*)</${tag}>`))?.[1] ?? ''
}
