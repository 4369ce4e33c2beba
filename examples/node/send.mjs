// node send.mjs <target> <command> <payload as JSON>
// Environment: SNAVIO_URL, SNAVIO_TOKEN, SNAVIO_SOURCE, AWS_REGION, the sender role's AWS credentials, and
// AWS_ENDPOINT_URL where AWS is emulated.
import { assumeEmitRole, currentKey, putEvents, signedDetail, tenantConfig } from './snavio.mjs'

const { SNAVIO_URL, SNAVIO_TOKEN, SNAVIO_SOURCE, ...environment } = process.env
const [target, command, payload] = process.argv.slice(2)
const sender = {
  region: environment.AWS_REGION ?? environment.AWS_DEFAULT_REGION ?? 'us-east-1',
  endpoint: environment.AWS_ENDPOINT_URL,
  accessKeyId: environment.AWS_ACCESS_KEY_ID,
  secretAccessKey: environment.AWS_SECRET_ACCESS_KEY,
  sessionToken: environment.AWS_SESSION_TOKEN
}
const config = await tenantConfig(SNAVIO_URL, SNAVIO_TOKEN)
const emit = await assumeEmitRole(sender, config.emit_role_arn)
const detail = signedDetail(currentKey(config, SNAVIO_SOURCE), target, command, JSON.parse(payload))
const [event] = await putEvents(emit, config.bus, SNAVIO_SOURCE, [detail])
console.log(JSON.stringify({ id: JSON.parse(detail).metadata.id, event_id: event }))
