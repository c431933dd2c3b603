// What the programs in JavaScript share: named checks, each bounded, and the count at the end.

const assert = require('node:assert/strict')

const { readFileSync } = require('node:fs')
const path = require('node:path')

const LIMIT_MS = 30_000
const URL = process.env.DATABASE_URL
const parameters = new globalThis.URL(URL).searchParams
// Whether the server is one that takes only encrypted connections with passwords.
const SECURED = parameters.get('sslmode') === 'verify-full'

const checks = []

/** Registers a check; its name says what must hold. */
function check(name, body) {
  checks.push({ name, body })
}

/** The same, for what can only hold on a secured server. */
function checkSecured(name, body) {
  if (SECURED) check(name, body)
}

/** What Node's TLS needs to know the server: a root, by default the one that signed its certificate. */
function trusted(root = 'root.crt') {
  if (!SECURED) return false
  return { ca: readFileSync(path.join(path.dirname(parameters.get('sslrootcert')), root), 'utf8') }
}

/** The URL without what it says of TLS, and with another password if one is given. */
function bare(password) {
  const url = new globalThis.URL(URL)
  url.search = ''
  if (password) url.password = password
  return url.toString()
}

function equal(got, expected) {
  assert.deepEqual(got, expected)
}

/** The work must fail with this SQLSTATE; resolves with the error. */
async function refused(sqlstate, work) {
  let error
  try {
    await (typeof work === 'function' ? work() : work)
  } catch (raised) {
    error = raised
  }
  assert.ok(error, `no error where PostgreSQL says ${sqlstate}`)
  const got = error.code ?? error.driverError?.code
  if (got !== sqlstate) {
    const wrong = new Error(`${got} ${error.message} where PostgreSQL says ${sqlstate}`)
    wrong.stack = error.stack
    throw wrong
  }
  return error
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function line(error) {
  const code = error.code ?? error.driverError?.code ?? error.name
  const message = String(error.message).split('\n').map((part) => part.trim()).filter(Boolean).join(' | ')
  const query = error.query ? ` (query: ${String(error.query).replace(/\s+/g, ' ').slice(0, 300)})` : ''
  const frame = String(error.stack).split('\n').find((part) => part.includes('main.js'))
  const place = frame?.match(/main\.js:\d+/)?.[0]
  return `${code}: ${message}${query}${place ? ` (${place})` : ''}`
}

/** Runs the checks in order and ends the process. */
async function main() {
  let failed = 0
  // An error that nobody awaits any more belongs to a check that has failed already.
  process.on('unhandledRejection', (error) => console.log(`        unheard: ${line(error)}`))
  process.on('uncaughtException', (error) => console.log(`        uncaught: ${line(error)}`))
  for (const { name, body } of checks) {
    let timer
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${LIMIT_MS / 1000} s`)), LIMIT_MS)
    })
    try {
      await Promise.race([body(), late])
      console.log(`ok      ${name}`)
    } catch (error) {
      failed += 1
      console.log(`FAILED  ${name}: ${line(error)}`)
    }
    clearTimeout(timer)
  }
  console.log(`${checks.length - failed} passed, ${failed} failed`)
  // Connections that got no answer must not keep the process.
  process.exit(failed ? 1 : 0)
}

module.exports = { URL, assert, bare, check, checkSecured, equal, main, refused, sleep, trusted }
