# frozen_string_literal: true

# Runs ActiveRecord's tests, in whose folder it stands.
require "ruby_suite_verdicts"

Dir.glob("test/cases/**/*_test.rb").sort.each do |file|
  next if file.include?("/adapters/") && !file.include?("/adapters/postgresql/")
  # Its syntax trees, which no database sees.
  next if file.include?("/arel/")

  require "./#{file}"
end
