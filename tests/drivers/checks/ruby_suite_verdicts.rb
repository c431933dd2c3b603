# frozen_string_literal: true

# Prints a line for each test that Minitest runs to descriptor 3. Suites of gems load it before their tests:
# NAME/suite puts this folder on Ruby's path.
require "minitest"

module Verdicts
  LINES = IO.new(3, "w").tap { |lines| lines.sync = true }

  # One line; no addresses of objects, and no divider within.
  def self.line(text)
    text.gsub(/\s+/, " ").gsub(" | ", " / ").gsub(/0x\h{6,}/, "0x…")
  end

  # What failed, without the backtrace that Minitest puts behind an error it did not expect.
  def self.message(failure)
    line(failure.message.lines.grep_v(/^ +\/.*:\d+:in /).join)[0, 300].strip
  end

  # Called by Minitest for what --verbose and the like ask for.
  class Reporter < Minitest::AbstractReporter
    def record(result)
      name = Verdicts.line("#{result.class_name}##{result.name}").gsub("|", "/")
      return LINES.puts("skip #{name}") if result.skipped?
      return LINES.puts("ok #{name}") if result.passed?

      LINES.puts("fail #{name} | #{Verdicts.message(result.failure)}")
    end
  end
end

module Minitest
  def self.plugin_verdicts_init(_options)
    reporter << Verdicts::Reporter.new
  end
  extensions << "verdicts"
end
