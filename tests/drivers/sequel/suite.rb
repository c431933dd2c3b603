# frozen_string_literal: true

# Runs Sequel's adapter and integration specs, in whose folder it stands, and prints a line for each test
# to descriptor 3.
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

  # In the order of the files. A shuffle with a seed would be another one where a server lacks a type, since
  # some descriptions then are not there to be shuffled.
  def self.__run(reporter, options)
    Runnable.runnables.each { |suite| suite.run(reporter, options) }
  end

  class Test
    def self.test_order
      :alpha
    end
  end
end

require "./spec/adapters/postgres_spec"
Dir.glob("spec/integration/*_test.rb").sort.each { |file| require "./#{file}" }
