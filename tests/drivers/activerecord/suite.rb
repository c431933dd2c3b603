# frozen_string_literal: true

# Runs ActiveRecord's tests, in whose folder it stands, and prints a line for each to descriptor 3.
require "minitest"

module Verdicts
  LINES = IO.new(3, "w").tap { |lines| lines.sync = true }

  # Called by Minitest for what --verbose and the like ask for.
  class Reporter < Minitest::AbstractReporter
    def record(result)
      name = "#{result.class_name}##{result.name}".gsub(/\s+/, " ").gsub("|", "/")
      return LINES.puts("skip #{name}") if result.skipped?
      return LINES.puts("ok #{name}") if result.passed?

      message = result.failure.message.gsub(/\s+/, " ").gsub(" | ", " / ").gsub(/0x\h{6,}/, "0x…")
      LINES.puts("fail #{name} | #{message[0, 300]}")
    end
  end
end

module Minitest
  def self.plugin_verdicts_init(_options)
    reporter << Verdicts::Reporter.new
  end
  extensions << "verdicts"
end

Dir.glob("test/cases/**/*_test.rb").sort.each do |file|
  next if file.include?("/adapters/") && !file.include?("/adapters/postgresql/")
  # Its syntax trees, which no database sees.
  next if file.include?("/arel/")

  require "./#{file}"
end
