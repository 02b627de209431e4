package ecosystem

import (
	"path"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
)

func dotnet() Ecosystem {
	return Ecosystem{
		Name:     "dotnet",
		Markers:  []string{"*.sln", "*.slnx", "*.csproj", "*.fsproj", "*.vbproj", "global.json"},
		Tools:    dotnetTools(),
		Checkers: strings.Fields("xunit nunit mstest coverlet stylecop"),
		Groups: []Group{
			{Role: Environment, First: true, Files: []string{"bin/Debug/", "bin/Release/", "obj/Debug/", "obj/Release/"},
				Reason: "is a result of a build, which stands for the code"},
			{Role: Build, First: true, Files: []string{"*.csproj", "*.fsproj", "*.vbproj"},
				Reason: "says how .NET code is built"},
			{Role: Test, Files: []string{"*Tests.cs", "*Test.cs", "*Tests.fs", "*Test.fs", "*Specs.cs"},
				Reason: "holds .NET tests"},
			{Role: Test, Files: []string{"*.Tests/", "*.Test/", "*Tests/", "*.UnitTests/", "*.IntegrationTests/",
				"*.verified.*"}, Reason: "belongs to .NET tests"},
			{Role: TestConfig, Files: []string{"*.runsettings", "*.testsettings", "xunit.runner.json", "*.xunit.runner.json",
				"testconfig.json", "coverlet.runsettings"}, Reason: "configures .NET test runners"},
			{Role: TestConfig, Files: []string{".globalconfig", "*.ruleset", "stylecop.json", ".csharpierrc*"},
				Reason: "configures a check of .NET code"},
			{Role: Environment, Files: []string{"global.json", "nuget.config", "NuGet.config", "NuGet.Config",
				"Directory.Build.rsp", "MSBuild.rsp", "dotnet-tools.json", "launchSettings.json"},
				Reason: "changes how .NET tools run"},
			{Role: Build, Files: []string{"*.sln", "*.slnx", "Directory.Build.props", "Directory.Build.targets",
				"Directory.Packages.props", "*.props", "*.targets", "packages.lock.json", "build.cake", "paket.dependencies",
				"paket.lock"}, Reason: "says how .NET code is built"},
		},
		Sources: []string{"*.cs"},
		Syntax: lex.Syntax{Spans: []lex.Span{
			{Open: "//", Close: "\n", Comment: true},
			{Open: "/*", Close: "*/", Comment: true, Lines: true},
			{Open: `"""`, Close: `"""`, Lines: true},
			{Open: `@"`, Close: `"`, Lines: true},
			{Open: `@$"`, Close: `"`, Lines: true},
			{Open: `$@"`, Close: `"`, Lines: true},
			{Open: `"`, Close: `"`, Escape: true},
			{Open: "'", Close: "'", Escape: true},
		}},
		Tests: []string{"[ Fact ]", "[ Fact (", "[ Theory ]", "[ Theory (", "[ Test ]", "[ Test (", "[ TestMethod ]",
			"[ TestMethod (", "[ DataTestMethod ]", "[ Fact ,", "[ Theory ,", "[ Test ,", "[ TestMethod ,"},
		Skips: []string{"Skip =", "[ Ignore", ", Ignore", "Ignore =", "[ Explicit", "Assert . Ignore (",
			"Assert . Inconclusive (", "Assert . Skip* (", "Skip . If (", "Skip . IfNot ("},
		Helpers: []string{"using Xunit", "using NUnit", "using Microsoft . VisualStudio . TestTools", "using FluentAssertions"},
		Assertions: []string{"Assert . %", "CollectionAssert . %", "StringAssert . %", ". Should (", ". Should* (",
			". Verify (", "throw new", "Verify ("},
		Main:      []string{"static void Main (", "static int Main (", "static async Task Main ("},
		MainFiles: []string{"Program.cs"},
		Shapes: []Shape{
			{Kind: EarlyExit, Has: []string{"Environment . Exit ( 0 )", "Environment . FailFast ("},
				Detail: "ends the process with success"},
			{Kind: EarlyExit, Main: true, Roles: []Role{None, Test}, Has: []string{"[ ModuleInitializer ]", ". ProcessExit + ="},
				Detail: "runs when an assembly is loaded or the process ends"},
			{Kind: TestAware, Main: true, Roles: []Role{None}, Has: []string{`"testhost"`, `"xunit.core"`, `"nunit.framework"`},
				Detail: "asks whether it runs under test"},
		},
		Canary: dotnetCanary,
	}
}

func dotnetTools() []Tool {
	return []Tool{{
		Name: "dotnet", Usual: true,
		Setup:  []Line{{Shell: "dotnet restore"}},
		Gate:   []Line{{Shell: "dotnet test --no-restore"}},
		Caches: []string{".nuget/packages"},
		Image:  Image{Missing: []string{"dotnet"}},
		Lacks: map[Part]string{
			NoHosts: "settings of the project and of the user say together",
			NoReads: "projects import files of any name",
			NoImage: "Debian has none",
		},
	}}
}

func dotnetCanary(p Site) []Canary {
	if path.Ext(p.Beside) != ".cs" {
		return nil
	}
	s := dotnet().Syntax.Read(p.Text)
	using, class, method := "", "", ""
	switch {
	case s.Has("[ Fact", "[ Theory"):
		using, method = "Xunit", "[Fact]"
	case s.Has("[ TestMethod", "[ TestClass"):
		using, class, method = "Microsoft.VisualStudio.TestTools.UnitTesting", "[TestClass]\n", "[TestMethod]"
	case s.Has("[ Test", "[ TestCase"):
		using, class, method = "NUnit.Framework", "[TestFixture]\n", "[Test]"
	default:
		return nil
	}
	name := strings.TrimSuffix(siblingName(p.Beside, nil, "Checks"+p.Suffix, "Tests.cs", "Test.cs", ".cs"), ".cs")
	return []Canary{{Path: name + ".cs", Content: []byte("using " + using + `;

` + class + `public class ` + name + `
{
    ` + method + `
    public void Canary()
    {
        throw new System.Exception("` + p.Message() + `");
    }
}
`)}}
}
