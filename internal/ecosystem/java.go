package ecosystem

import (
	"path"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
)

func java() Ecosystem {
	return Ecosystem{
		Name:     "java",
		Markers:  []string{"pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "build.xml"},
		Tools:    javaTools(),
		Checkers: strings.Fields("junit testng checkstyle pmd spotbugs detekt ktlint"),
		Groups: []Group{
			{Role: Environment, First: true, Files: []string{".gradle/", "target/classes/", "target/test-classes/",
				"build/classes/", "*.class"},
				Reason: "is a result of a build, which stands for the code"},
			{Role: Environment, First: true, Files: []string{"org/junit/", "org/testng/", "org/assertj/", "org/hamcrest/",
				"org/mockito/", "junit/framework/", "kotlin/test/"}, Reason: "takes the place of a test library"},
			{Role: TestConfig, First: true, Files: []string{"junit-platform.properties", "testng.xml", "testng.yaml",
				"src/test/**/META-INF/services/*", "mockito-extensions/*", "logback-test.xml", "application-test.*"},
				Reason: "configures Java test runners"},
			{Role: Test, Files: []string{"*Test.java", "*Tests.java", "*TestCase.java", "Test*.java", "*IT.java", "*Test.kt",
				"*Tests.kt", "*IT.kt", "*Spec.groovy", "*Test.groovy", "*Spec.scala", "*Test.scala", "*Suite.scala"},
				Reason: "holds Java tests"},
			{Role: Test, Files: []string{"src/test/", "src/*Test/", "src/it/", "src/testFixtures/"},
				Reason: "belongs to Java tests"},
			{Role: TestConfig, Files: []string{"checkstyle.xml", "checkstyle-*.xml", "pmd.xml", "spotbugs*.xml", "detekt.yml",
				"ktlint*"},
				Reason: "configures a check of Java code"},
			{Role: Environment, Files: []string{".mvn/", "gradle.properties", "local.properties", ".sdkmanrc", ".java-version",
				"init.gradle", "maven-settings.xml"}, Reason: "changes how Java tools run"},
			{Role: Build, Files: []string{"pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle",
				"settings.gradle.kts", "*.gradle", "*.gradle.kts", "gradlew", "gradlew.bat", "mvnw", "mvnw.cmd", "gradle/",
				"buildSrc/", "build-logic/", "build.xml", "build.sbt", "gradle.lockfile"}, Reason: "says how Java code is built"},
		},
		Runners: map[string][]string{
			"gradle": {"build.gradle", "build.gradle.kts"}, "gradlew": {"build.gradle", "build.gradle.kts"},
			"mvn": {"pom.xml"}, "mvnw": {"pom.xml"}, "ant": {"build.xml"}, "sbt": {"build.sbt"},
		},
		Interpreters: []string{"java"},
		Sources:      []string{"*.java", "*.kt", "*.groovy", "*.scala"},
		Syntax: lex.Syntax{Spans: []lex.Span{
			{Open: "//", Close: "\n", Comment: true},
			{Open: "/*", Close: "*/", Comment: true, Lines: true},
			{Open: `"""`, Close: `"""`, Escape: true, Lines: true},
			{Open: `"`, Close: `"`, Escape: true},
			{Open: "'", Close: "'", Escape: true},
		}},
		Tests: []string{"@ Test", "@ ParameterizedTest", "@ RepeatedTest", "@ TestFactory", "@ TestTemplate", "@ Property",
			"@ org . junit . Test", "@ org . junit . jupiter . api . Test", "public void =test* ( )"},
		Skips: []string{"@ Disabled*", "@ Ignore", "@ EnabledIf*", "@ EnabledOn*", "@ EnabledFor*", "assume* (", "Assume . %",
			"Assumptions . %", "enabled = false", "@ org . junit . Ignore", "@ org . junit . jupiter . api . Disabled"},
		Helpers: []string{"import org . junit", "import static org . junit", "import org . testng", "import static org . testng",
			"import org . assertj", "import static org . assertj", "import org . hamcrest", "import static org . hamcrest",
			"import kotlin . test", "import io . kotest", "import spock", "import org . scalatest"},
		Assertions: []string{"assert* (", ". assert* (", "fail (", "verify (", ". fail (", "expectThrows (", "should* (",
			"expectThat (", "expected = %"},
		Main:      []string{"void main (", "fun main ("},
		MainFiles: []string{"Main.java", "Main.kt"},
		Shapes: []Shape{
			{Kind: EarlyExit, Has: []string{"System . exit ( 0 )", ". halt ( 0 )", "exitProcess ( 0 )"},
				Detail: "ends the process with success"},
			{Kind: RunnerHook, Main: true, Has: []string{"implements TestExecutionExceptionHandler",
				"implements ExecutionCondition", "implements InvocationInterceptor", "implements TestRule",
				"implements IHookable", "implements IAnnotationTransformer", "implements TestWatcher"},
				Detail: "changes which tests run or how they fail"},
			{Kind: TestAware, Main: true, Roles: []Role{None}, Has: []string{`Class . forName ( "org.junit.Test"`,
				`"org.junit.jupiter.api.Test"`, `"surefire.test.class.path"`, `"org.gradle.test.worker"`},
				Detail: "asks whether it runs under test"},
		},
		Retests: []Retest{gradle("gradle"), {
			Root:    []string{"pom.xml"},
			Files:   []string{"*Test.java", "*Tests.java", "*TestCase.java", "Test*.java", "*Test.kt", "*Tests.kt"},
			Program: "mvn",
			Wrapper: "mvnw",
			Line:    "{program} -q -B test -Dtest={stem}",
			Unbuilt: []string{"COMPILATION ERROR", "Compilation failure"},
			Unfound: []string{"No tests were executed", "No tests matching pattern"},
		}, gradle("")},
		Canary: javaCanary,
	}
}

func javaTools() []Tool {
	wrapped := func(wrapper, program, arguments string) []Line {
		return []Line{{If: fileClue(wrapper), Shell: "./" + wrapper + arguments}, {Shell: program + arguments}}
	}
	return []Tool{
		{
			Name: "gradle", Markers: []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradlew"},
			Setup:  wrapped("gradlew", "gradle", " --no-daemon testClasses"),
			Gate:   wrapped("gradlew", "gradle", " --no-daemon test"),
			Caches: []string{".gradle/wrapper/dists", ".gradle/caches/modules-2"},
			Image:  Image{Packages: []string{"default-jdk-headless"}, Missing: []string{"gradle"}}, // Debian's gradle is too old for most projects
			Lacks:  map[Part]string{NoHosts: "only its build scripts say", NoReads: "it compiles the project"},
		},
		{
			Name: "maven", Markers: []string{"pom.xml", "mvnw"},
			Setup: wrapped("mvnw", "mvn", " -B -q test-compile"),
			Gate:  wrapped("mvnw", "mvn", " -B -q test"),
			Image: Image{Packages: []string{"default-jdk-headless", "maven"}},
			Lacks: map[Part]string{
				NoHosts: "only its effective settings and model say", NoCaches: "its repository also has what projects installed",
				NoReads: "it compiles the project",
			},
		},
		{Name: "ant", Markers: []string{"build.xml"}, Lacks: sameReason("its targets have no usual names")},
	}
}

// gradle runs the tests of one class in the module that contains it; Gradle finds the settings file above by itself. Results of
// earlier builds do not count. Before Gradle 4.7 a class name without a package meant a class in no package, hence two --tests.
func gradle(gate string) Retest {
	return Retest{
		Gate: gate, Root: []string{"build.gradle", "build.gradle.kts"}, Program: "gradle", Wrapper: "gradlew",
		Files: []string{
			"*Test.java", "*Tests.java", "*TestCase.java", "Test*.java", "*Test.kt", "*Tests.kt",
			"*Spec.groovy", "*Test.groovy",
		},
		Line: "{program} --no-daemon --no-build-cache -q test --tests {stem} --tests '*.'{stem}",
		Unbuilt: []string{"Compilation failed", "Compilation error", ":compileJava'", ":compileTestJava'", ":compileKotlin'",
			":compileTestKotlin'", ":compileTestGroovy'"},
		Unfound: []string{"No tests found for given includes"},
	}
}

func javaCanary(p Site) []Canary {
	ending := path.Ext(p.Beside)
	if p.Beside == "" || ending != ".java" && ending != ".kt" {
		return nil
	}
	class := strings.TrimSuffix(siblingName(p.Beside, []string{"Test"}, "Checks"+p.Suffix,
		"Tests"+ending, "TestCase"+ending, "Test"+ending, "IT"+ending, ending), ending)
	s := java().Syntax.Read(p.Text)
	end := ";\n"
	if ending == ".kt" {
		end = "\n"
	}
	head := ""
	if clause := lex.Compile([]string{"package %"}).Find(s); len(clause) > 0 {
		name := ""
		for i := clause[0].Start + 1; i < len(s.Tokens) && (s.Tokens[i].Kind == lex.Word || s.Is(i, ".")) && !s.Is(i, "import"); i++ {
			name += string(s.Tokens[i].Of(s.Text))
		}
		head = "package " + name + end + "\n"
	}
	mark, test := "    @Test\n", "org.junit.Test"
	switch {
	case s.Has("org . junit . jupiter"):
		test = "org.junit.jupiter.api.Test"
	case s.Has("org . testng"):
		test = "org.testng.annotations.Test"
	case s.Has("kotlin . test"):
		test = "kotlin.test.Test"
	case !s.Has("org . junit", "junit . framework"):
		return nil // another library, such as Spock
	}
	extends := ""
	if s.Has("extends TestCase", "extends junit . framework . TestCase") && ending == ".java" { // JUnit 3
		mark, test, extends = "", "junit.framework.TestCase", " extends TestCase"
	}
	head += "import " + test + end + "\n// ralph planted this test to see whether the checks notice a failing test.\n"
	if ending == ".kt" {
		return []Canary{{Path: class + ending, Content: []byte(head + "class " + class + " {\n" + mark +
			"    fun testCanary() {\n        throw AssertionError(\"" + p.Message() + "\")\n    }\n}\n")}}
	}
	return []Canary{{Path: class + ending, Content: []byte(head + "public class " + class + extends + " {\n" + mark +
		"    public void testCanary() {\n        throw new AssertionError(\"" + p.Message() + "\");\n    }\n}\n")}}
}
