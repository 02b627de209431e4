package ecosystem

import (
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
)

func php() Ecosystem {
	return Ecosystem{
		Name:     "php",
		Markers:  []string{"composer.json", "phpunit.xml", "phpunit.xml.dist", "artisan"},
		Tools:    phpTools(),
		Checkers: strings.Fields("phpunit codeception behat phpspec pest infection phpstan psalm phpcs rector pint"),
		Groups: []Group{
			{Role: Test, Files: []string{"*Test.php", "*_test.php", "*Cest.php", "*Spec.php"}, Reason: "holds PHP tests"},
			{Role: Test, Files: []string{"tests/**/*.php", "test/**/*.php", "*.phpt"}, Reason: "belongs to PHP tests"},
			{Role: TestConfig, Files: []string{"phpunit.xml*", "phpunit.dist.xml", "codeception.yml", "codeception.dist.yml",
				"*.suite.yml", "behat.yml*", "phpspec.yml*", "tests/bootstrap.php", "tests/Pest.php", "tests/TestCase.php",
				"infection.json*", ".phpunit.result.cache", ".phpunit.cache/"},
				Reason: "configures PHP test runners"},
			{Role: TestConfig, Files: []string{"phpstan.neon*", "phpstan-baseline.*", "psalm.xml*", "psalm-baseline.xml",
				".php-cs-fixer*", ".php_cs*", "phpcs.xml*", "rector.php", "pint.json"}, Reason: "configures a check of PHP code"},
			{Role: Environment, Files: []string{"php.ini", ".user.ini", ".php-version", "auth.json", "PHPUnit/Framework/",
				"PHPUnit/Runner/", "src/Pest/", "src/Mockery/", "src/Prophecy/"}, Reason: "changes what PHP loads, or how it runs"},
			{Role: Build, Files: []string{"composer.json", "composer.lock", "artisan", "symfony.lock"},
				Reason: "says how PHP code is built"},
		},
		Runners: map[string][]string{
			"composer": {"composer.json"}, "phpunit": {"phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"},
			"pest": {"phpunit.xml", "tests/Pest.php"},
		},
		Interpreters: []string{"php"},
		Sources:      []string{"*.php"},
		Syntax: lex.Syntax{Heredocs: true, Spans: []lex.Span{
			{Open: "//", Close: "\n", Comment: true},
			{Open: "#", Close: "\n", Comment: true, Not: "["}, // #[ begins an attribute
			{Open: "/*", Close: "*/", Comment: true, Lines: true},
			{Open: `"`, Close: `"`, Escape: true, Lines: true},
			{Open: "'", Close: "'", Escape: true, Lines: true},
		}},
		Tests: []string{"function =test* (", "# [ Test ]", `it ( ="`, `test ( ="`},
		Skips: []string{"markTestSkipped (", "markTestIncomplete (", "- > skip (", "- > todo (", "# [ Requires*",
			"# [ DoesNotPerformAssertions"},
		Focus:   []string{"- > only ("},
		Helpers: []string{"PHPUnit"},
		Assertions: []string{"assert* (", "expect (", "fail (", "expectException* (", "shouldReturn (", "- > expects (",
			"throw new"},
		MainFiles: []string{"bin/**/*.php", "artisan"},
		Shapes: []Shape{
			{Kind: EarlyExit, Has: []string{"exit ( 0 )", "exit ( )", "exit ;", "die ( )", "die ;", "die ( 0 )", "exit 0"},
				Detail: "ends the process with success"},
			{Kind: RunnerHook, Main: true, Has: []string{"namespace PHPUnit", "namespace Pest", "namespace Mockery", "namespace Prophecy"},
				Detail: "declares names of a library of tests"},
			{Kind: RunnerHook, Main: true, Has: []string{"class_alias ("}, With: []string{"PHPUnit", `"PHPUnit*"`, `"\PHPUnit*"`,
				"Mockery", `"Mockery*"`}, Detail: "gives a class of a library of tests another meaning"},
			{Kind: EarlyExit, Main: true, Has: []string{"register_shutdown_function ("},
				Detail: "takes part in how the process ends"},
			{Kind: TestAware, Main: true, Roles: []Role{None}, Has: []string{`"PHPUNIT_COMPOSER_INSTALL"`,
				"PHPUNIT_COMPOSER_INSTALL", `"__PHPUNIT_PHAR__"`, "runningUnitTests ("},
				Detail: "asks whether it runs under test"},
		},
		Canary: phpCanary,
	}
}

func phpTools() []Tool {
	says := func(words ...string) []Clue { return []Clue{{Files: []string{"composer.json"}, Words: words}} }
	return []Tool{{
		Name: "composer", Usual: true,
		Setup: []Line{{Shell: "composer install --no-interaction"}},
		Lock:  []string{"composer.lock"}, MakeLock: "composer install",
		Gate:   []Line{{If: says(`"test":`, `"test" :`), Shell: "composer test"}, {If: says("phpunit"), Shell: "vendor/bin/phpunit"}},
		Caches: []string{".cache/composer"},
		Image:  Image{Packages: []string{"composer", "php-cli", "php-curl", "php-mbstring", "php-xml", "unzip"}},
		Reads: []Fetch{{Commands: []string{"composer install"}, Reads: Reads{
			Files: []string{"composer.json", "composer.lock", "auth.json"}, Unless: []string{`"scripts"`, `"classmap"`, `"path"`},
		}}},
		Lacks: sameReason("only the project's composer.json and lock file say", NoHosts),
	}}
}

func phpCanary(p Site) []Canary {
	if p.Beside == "" {
		return nil
	}
	class := strings.TrimSuffix(siblingName(p.Beside, nil, "Checks"+p.Suffix, "Test.php", "_test.php", ".php"), ".php")
	s := php().Syntax.Read(p.Text)
	if !s.Has("extends %") && s.Has(`it ( "`, `test ( "`) { // Pest
		return []Canary{{Path: class + ".php",
			Content: []byte("<?php\n\ntest('" + p.Suffix + `', function () {
    throw new \RuntimeException('` + p.Message() + `');
});
`)}}
	}
	space := ""
	if clause := lex.Compile([]string{"namespace %"}).Find(s); len(clause) > 0 {
		first := s.Tokens[clause[0].Start+1]
		rest, _, _ := strings.Cut(string(s.Text[first.Start:]), ";")
		if !strings.ContainsAny(rest, "{\n\"' ") {
			space = "namespace " + rest + ";\n\n"
		}
	}
	return []Canary{{Path: class + ".php",
		Content: []byte("<?php\n\n" + space + "final class " + class + ` extends \PHPUnit\Framework\TestCase
{
    public function testIt(): void
    {
        throw new \RuntimeException('` + p.Message() + `');
    }
}
`)}}
}
