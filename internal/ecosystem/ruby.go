package ecosystem

import (
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
)

func ruby() Ecosystem {
	return Ecosystem{
		Name:     "ruby",
		Markers:  []string{"Gemfile", "gems.rb", "*.gemspec", "Rakefile"},
		Tools:    rubyTools(),
		Checkers: strings.Fields("rspec minitest simplecov cucumber rubocop standardrb"),
		Groups: []Group{
			{Role: Test, Files: []string{"*_spec.rb", "*_test.rb", "test_*.rb"}, Reason: "holds Ruby tests"},
			{Role: Test, Files: []string{"spec/**/*.rb", "spec/**/*.yml", "test/**/*.rb", "features/"},
				Reason: "belongs to Ruby tests"},
			{Role: TestConfig, Files: []string{".rspec", ".rspec-local", "spec_helper.rb", "rails_helper.rb", "test_helper.rb",
				".simplecov", "cucumber.yml", "spec/support/**/*.rb", "test/support/**/*.rb", ".minitest.rb"},
				Reason: "configures Ruby test runners"},
			{Role: TestConfig, Files: []string{".rubocop.yml", ".rubocop_todo.yml", ".standard.yml", "sorbet/config"},
				Reason: "configures a check of Ruby code"},
			{Role: Environment, Files: []string{".bundle/", ".ruby-version", ".ruby-gemset", ".irbrc", ".rbenv-vars",
				"lib/rspec*.rb", "lib/minitest*.rb", "lib/minitest/", "lib/rspec/", "lib/test/unit.rb", "lib/test/unit/"},
				Reason: "changes what Ruby loads"},
			{Role: Build, Files: []string{"Rakefile", "rakefile", "Rakefile.rb", "*.rake", "Gemfile", "Gemfile.lock", "gems.rb",
				"gems.locked", "*.gemspec", "Guardfile", "config.ru", "bin/rails", "bin/rspec", "bin/rake", "bin/test"},
				Reason: "says how Ruby code is built"},
		},
		Runners: map[string][]string{"rake": {"Rakefile"}, "rspec": {".rspec"}, "bundle": {"Gemfile"}},
		Shadows: Shadows{Standard: strings.Fields(rubyStandard)},
		Imports: Imports{
			Read: rubyImports, Endings: []string{".rb", ".so"}, Beside: true, Roots: []string{"lib", "test", "spec"},
		},
		Interpreters: []string{"ruby"},
		Sources:      []string{"*.rb", "*.rake", "Rakefile"},
		Syntax: lex.Syntax{Heredocs: true, Regexps: true, Spans: []lex.Span{
			{Open: "\n=begin", Close: "\n=end", Comment: true, Lines: true},
			{Open: "#", Close: "\n", Comment: true, Apart: true},
			{Open: `"`, Close: `"`, Escape: true, Lines: true},
			{Open: "'", Close: "'", Escape: true, Lines: true},
		}},
		Body: End,
		Tests: []string{`it ="`, `it ( ="`, `specify ="`, `scenario ="`, `example ="`, `test ="`, `should ="`, "it {", "it do",
			`xit ="`, `fit ="`, `xit ( ="`, `fit ( ="`, `xspecify ="`, `pending ="`, "def =test_*"},
		Skips:   []string{"xit", "xdescribe", "xcontext", "xspecify", "xscenario", "pending", "skip", "omit"},
		Focus:   []string{"fit", "fdescribe", "fcontext", "fspecify", ", : focus", ", focus : true"},
		Helpers: []string{"Minitest", "RSpec", "Test : : Unit", `require "minitest/autorun"`},
		Assertions: []string{"expect (", "expect {", "expect do", "assert*", "refute*", "flunk", ". must_*", ". wont_*",
			". should", "is_expected ."},
		Main:      []string{"__FILE__ = = $ 0", "$ 0 = = __FILE__", "$ PROGRAM_NAME = = __FILE__"},
		MainFiles: []string{"bin/**/*.rb", "exe/**/*.rb", "Rakefile", "*.rake"},
		Shapes: []Shape{
			{Kind: EarlyExit, Has: []string{"exit ( 0 )", "exit 0", "exit ( true )", "exit true"},
				Detail: "ends the process with success"},
			{Kind: EarlyExit, Main: true, Has: []string{"exit !", "at_exit {", "at_exit do"},
				Detail: "takes part in how the process ends"},
			{Kind: RunnerHook, Main: true, Roles: []Role{TestConfig, Test}, Has: []string{"config . around",
				"config . filter_run_excluding", "filter_run_excluding", "filter_run_when_matching", "failure_exit_code =",
				"config . filter_run"},
				Detail: "changes which tests run or how they fail"},
			{Kind: RunnerHook, Roles: []Role{None}, Has: []string{"$ LOAD_PATH . unshift", "$ : . unshift", "$ LOADED_FEATURES"},
				Detail: "changes from where modules are loaded"},
			{Kind: TestAware, Main: true, Roles: []Role{None}, Has: []string{"defined ? ( RSpec", "defined ? ( Minitest",
				"defined ? RSpec", "defined ? Minitest"},
				Detail: "asks whether it runs under test"},
		},
		Canary: rubyCanary,
	}
}

// rubyStandard lists the first parts of the names of Ruby's own libraries and of those that it installs.
const rubyStandard = "English abbrev base64 benchmark bigdecimal bundler cgi coverage csv date debug delegate did_you_mean digest drb " +
	"erb error_highlight etc expect fcntl fiddle fileutils find forwardable getoptlong io ipaddr irb json logger matrix mkmf monitor " +
	"mutex_m net nkf objspace observer open-uri open3 openssl optparse ostruct pathname pp prettyprint prime pstore psych pty racc rbconfig " +
	"rdoc readline reline resolv rexml rinda ripper rss ruby2_keywords rubygems securerandom set shellwords singleton socket stringio " +
	"strscan syntax_suggest syslog tempfile time timeout tmpdir tsort un uri weakref yaml zlib"

func rubyTools() []Tool {
	const bundle = `BUNDLE_PATH="$HOME/.bundle" bundle `
	// Rails defines its test tasks itself.
	rakeTest := []string{"TestTask", "task :test", "task test:", `task "test`, "task 'test", "application.load_tasks"}
	return []Tool{
		{
			Name: "bundler", Markers: []string{"Gemfile", "gems.rb"},
			Setup: []Line{{Shell: bundle + "install"}},
			Gate: []Line{
				{If: []Clue{{Files: []string{"Gemfile", "gems.rb", "*.gemspec"}, Words: []string{"rspec"}}}, Shell: bundle + "exec rspec"},
				{If: []Clue{{Files: []string{"Rakefile"}, Words: rakeTest}}, Shell: bundle + "exec rake test"},
			},
			Lock: []string{"Gemfile.lock", "gems.locked"}, MakeLock: "bundle lock",
			Reads: []Fetch{{Lines: []string{bundle + "install"}, Reads: Reads{
				Files: []string{"Gemfile", "Gemfile.lock", "gems.rb", "gems.locked", "*.gemspec", ".ruby-version", ".bundle/"},
			}}},
			Image: Image{Packages: []string{"ruby-dev", "bundler", "gcc", "g++", "make"}},
			Lacks: map[Part]string{NoHosts: "only the project's Gemfile says", NoCaches: "what it fetches stands with what it installed"},
		},
		{Name: "gem", Usual: true, Lacks: sameReason("it installs for no project")},
	}
}

func rubyCanary(p Site) []Canary {
	if p.Beside == "" {
		return nil
	}
	name := siblingName(p.Beside, []string{"test_"}, p.Suffix, "_spec.rb", "_test.rb", ".rb")
	s := ruby().Syntax.Read(p.Text)
	verdict := `    replaced = wrong.any? do |w|
      w.call
      true
    rescue Exception
      false
    end
    raise "` + p.Message() + `" unless replaced
  end
end
`
	class, library := "Minitest::Test", "minitest/autorun"
	switch {
	case s.Has("Test : : Unit"):
		class, library = "Test::Unit::TestCase", "test/unit"
	case !s.Has("Minitest", `"minitest/autorun"`, "ActiveSupport", "def test_*"):
		return []Canary{{Path: name, Content: []byte(`RSpec.describe "` + p.Suffix + `" do
  it "fails" do
    wrong = [
      -> { expect(1).to eq(2) },
      -> { expect(1).not_to eq(1) },
      -> { expect([1]).to match_array([2]) },
      -> { expect([1]).to include(2) },
      -> { expect(false).to be(true) },
      -> { expect(nil).to be_truthy },
      -> { expect(1).to be_nil },
      -> { expect("a").to match(/b/) },
      -> { expect {}.to raise_error(ArgumentError) },
    ]
` + verdict)}}
	}
	return []Canary{{Path: name, Content: []byte(`require "` + library + `"

class TestX` + p.Suffix + ` < ` + class + `
  def test_it
    wrong = [
      -> { assert false },
      -> { assert_equal 1, 2 },
      -> { assert_nil 1 },
      -> { assert_includes [1], 2 },
      -> { assert_match(/b/, "a") },
      -> { assert_raises(ArgumentError) {} },
    ]
` + verdict)}}
}
