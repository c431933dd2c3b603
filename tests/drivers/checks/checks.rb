# What the programs in Ruby share: named checks, each bounded, and the count at the end.

require 'timeout'
require 'uri'

LIMIT_S = 30
URL = ENV.fetch('DATABASE_URL')
# Whether the server is one that takes only encrypted connections with passwords.
SECURED = URL.include?('sslmode=verify-full')

CHECKS = []

# Registers a check; its name says what must hold. Some can only hold on a secured server.
def check(name, secured: false, &body)
  CHECKS << [name, body] if SECURED || !secured
end

def equal(got, expected)
  raise "#{got.inspect} where PostgreSQL has #{expected.inspect}" unless got == expected
end

# The SQLSTATE of an error or of what caused it, if it came from the server.
def sqlstate(error)
  while error
    return error.result.error_field(PG::Result::PG_DIAG_SQLSTATE) if error.respond_to?(:result) && error.result
    error = error.respond_to?(:wrapped_exception) && error.wrapped_exception || error.cause
  end
end

# The block must fail with this SQLSTATE; returns the error.
def refused(state)
  yield
rescue StandardError => error
  got = sqlstate(error)
  raise "#{got} #{error.message} where PostgreSQL says #{state}" unless got == state
  error
else
  raise "no error where PostgreSQL says #{state}"
end

# Each block must raise an error of the class that it stands with.
def raised(blocks)
  blocks.each do |kind, body|
    body.call
    raise "no #{kind}"
  rescue kind
    nil
  end
end

# The parameters of the URL as libpq names them.
def libpq_parameters
  uri = URI.parse(URL)
  named = { host: uri.host, port: uri.port, user: uri.user, password: uri.password, dbname: uri.path.delete_prefix('/') }
  named.compact.merge(URI.decode_www_form(uri.query.to_s).to_h.transform_keys(&:to_sym))
end

# Runs the checks in order and ends the process.
def main
  failed = 0
  CHECKS.each do |name, body|
    Timeout.timeout(LIMIT_S) { body.call }
    puts "ok      #{name}"
  rescue StandardError => error
    failed += 1
    at = error.backtrace.grep(/main\.rb/).first.to_s[/main\.rb:\d+/]
    puts "FAILED  #{name}: #{error.class}: #{error.message.split("\n").map(&:strip).join(' | ')} (#{at})"
  end
  puts "#{CHECKS.size - failed} passed, #{failed} failed"
  $stdout.flush
  # Connections that got no answer must not keep the process.
  exit!(failed.zero? ? 0 : 1)
end
