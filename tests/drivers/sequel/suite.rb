# frozen_string_literal: true

# Runs Sequel's adapter and integration specs, in whose folder it stands.
require "ruby_suite_verdicts"

module Minitest
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
