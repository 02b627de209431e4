package suite_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/suite"
)

func TestCount(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, text                 string
		tests, skipped, focused, asserts int
	}{
		{"go", "a_test.go", "package a\nfunc TestA(t *testing.T) { t.Error(1) }\nfunc FuzzB(f *testing.F) { f.Skip() }\nfunc TestMain(m *testing.M) { m.Run() }", 2, 1, 0, 1},
		{"go comments and strings", "a_test.go", "package a\n// func TestA(t *testing.T) {}\n/* t.Skip() */\nvar s = \"t.Skip() func TestB(t *testing.T)\" + `\nt.Skip()` + string('\"') /* \" */\nfunc TestC(t *testing.T) { t.Log('\\'', \"\\\"t.Skip()\") }", 1, 0, 0, 0},
		{"go short", "a_test.go", "package a\nfunc TestA(t *testing.T) { if testing.Short() { t.SkipNow() }; require.NoError(t, nil) }", 1, 2, 0, 1},
		{"go at once", "a_test.go", "package a\nfunc TestA(t *testing.T) {\n\treturn\n\tt.Error(1)\n}\nfunc TestB(t *testing.T) {}\nfunc TestC(t *testing.T) { return; }", 3, 3, 0, 1},
		{"go ignored", "a_test.go", "// Copyright\n\n//go:build ignore\n\npackage a\nfunc TestA(t *testing.T) { t.Error(1) }\nfunc TestB(t *testing.T) { t.Error(1) }", 2, 2, 0, 2},
		{"go tag", "a_test.go", "//go:build integration && linux\npackage a\nfunc TestA(t *testing.T) { t.Error(1) }", 1, 1, 0, 1},
		{"go on linux", "a_test.go", "//go:build linux && !race && go1.20\npackage a\nfunc TestA(t *testing.T) { t.Error(1) }", 1, 0, 0, 1},
		{"go on windows", "a_windows_test.go", "package a\nfunc TestA(t *testing.T) { t.Error(1) }", 1, 1, 0, 1},
		{"go on darwin", "a_darwin_arm64_test.go", "package a\nfunc TestA(t *testing.T) { t.Error(1) }", 1, 0, 0, 1},
		{"go hidden", "_a_test.go", "package a\nfunc TestA(t *testing.T) { t.Error(1) }", 1, 1, 0, 1},
		{"go code", "a.go", "package a\nfunc TestA(t *testing.T) { t.Skip() }", 0, 0, 0, 0},
		{"go suite", "a_test.go", "package a\nfunc (s *Suite) TestA() { s.Require().True(ok) }", 1, 0, 0, 1},
		{"js", "a.test.js", "describe('x', () => { it('a', () => { expect(1).toBe(1) }); test(`b ${c('}')}`, async () => { await expect(2) }) })", 2, 0, 0, 2},
		{"js marks", "a.test.ts", "it.skip('a', () => {f()}); xit('b', () => {f()}); test.todo('c'); it.only('d', () => {f()}); describe.skip('e', () => {}); fit('f', () => {f()}); it['skip']('g', f)", 6, 5, 2, 0},
		{"js strings", "a.test.js", "// it('x')\n/* it.skip('x') */ const a = \"it('y')\", b = /it('[/]\"/g, c = `it('z') ${ `it.only('')` } it('z')`; it('real', () => { assert.equal(1, 1) })", 1, 0, 0, 1},
		{"js division", "a.test.js", "const a = b / 2; it('x / y', () => { expect(c / d) }); const e = f(1) / 2 / 3; it('z', g)", 2, 0, 0, 1},
		{"js at once", "a.test.js", "it('a', () => {}); it('b', function () { return; expect(1) }); it('c', () => { return expect(1).resolves })\nit('d', async () => {\n return\n expect(1) })", 4, 3, 0, 3},
		{"js each", "a.test.js", "it.each([[1, {}], [2, {}]])('adds %i', (a) => { expect(a) }); test.each`a | b`('x', ({a}) => { expect(a) })", 2, 0, 0, 2},
		{"node", "a.test.mjs", "test('a', { skip: true }, () => { assert(1) }); test('b', { skip: 'why' }, () => { assert(1) }); test('c', { only: true }, (t) => { t.skip() })", 3, 3, 1, 2},
		{"python", "test_a.py", "class A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 1)\nasync def test_b(x: int = 1, y={}) -> None:\n    assert x\ndef helper(): pass", 2, 0, 0, 2},
		{"python marks", "test_a.py", "@pytest.mark.skip(reason='x')\ndef test_a():\n    assert 1\n@unittest.skipIf(True, '')\ndef test_b(): assert 1\n@skip\ndef test_c():\n    pytest.skip('x')\n@pytest.mark.xfail\ndef test_d(): assert 0", 4, 5, 0, 3},
		{"python strings", "test_a.py", "'''\ndef test_a():\n  pytest.skip()\n'''\n# def test_b():\ndef test_c():\n    '''It's a \\''' \"@skip'''\n    assert \"def test_d()\" == 'def test_e()'", 1, 0, 0, 1},
		{"python idle", "test_a.py", "def test_a():\n    \"\"\"About it.\"\"\"\n    return\n    assert 1\ndef test_b(): pass\ndef test_c(): ...\ndef test_d(a: dict[str, int]):\n    assert a", 4, 3, 0, 2},
		{"rust", "tests/a.rs", "#[test]\nfn adds<'a>() { assert_eq!(1, 'a'); }\n#[tokio::test]\nasync fn b() { let s = r#\"#[test] \"x\" \"#; assert!(s); }\n/* /* */ #[test] */", 2, 0, 0, 2},
		{"rust marks", "src/a.rs", "#[cfg(test)]\nmod tests {\n #[test]\n #[ignore = \"slow\"]\n fn a() { assert!(x) }\n #[test] fn b() {}\n #[test] #[should_panic(expected = \"x\")] fn c() -> Result<(), E> { return; }\n}", 3, 3, 0, 1},
		{"java", "src/test/java/ATest.java", "class ATest {\n @Test(expected = E.class) public void a() { assertEquals(1, '\"'); }\n @Test public void testB() { Assertions.assertTrue(x, \"@Test\"); }\n public void testC() { fail(); }\n}", 3, 0, 0, 4},
		{"java marks", "ATest.java", "@Disabled class ATest { @Ignore @Test void a() { assumeTrue(false); f(); } @ParameterizedTest @ValueSource(ints = {1}) void b(int i) {} // @Test\n}", 2, 4, 0, 0},
		{"kotlin", "ATest.kt", "class A { @Test fun a() { assertEquals(1, 1) } @Test @Disabled fun b() { return } }", 2, 2, 0, 1},
		{"rspec", "spec/a_spec.rb", "describe 'x' do\n  it \"adds\" do\n expect(1).to eq(1)\n end\n  xit 'b' do\n f\n end\n  fit('c') { f }\n  it 'd', :skip do\n f\n end\n it 'e' do\n end\nend\n=begin\nit 'x'\n=end\n# it 'y'", 5, 3, 1, 1},
		{"minitest", "test/a_test.rb", "class A < Minitest::Test\n def test_a\n assert_equal 1, 1\n end\n def test_b\n skip\n end\n def test_c\n end\n X = <<~TEXT\n def test_d\n TEXT\nend", 3, 2, 0, 1},
		{"phpunit", "tests/ATest.php", "<?php class ATest extends TestCase { #[Test] public function adds(): void { $this->assertSame(1, 1); } /* function testX() */ # testY\n public function testB() { $this->markTestSkipped('x'); } #[Test] function testC() {} }", 3, 2, 0, 1},
		{"xunit", "a/ATests.cs", "class A { [Fact] public void B() { Assert.Equal(1, 1); } [Theory(Skip = \"x\")] [InlineData(1)] public void C(int i) { Assert.True(@\"a\"\"[Fact]\"); } [Fact] void D() { } }", 3, 2, 0, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := suite.Count(tt.file, []byte(tt.text))
			want := suite.Tests{Tests: tt.tests, Skipped: tt.skipped, Focused: tt.focused, Assertions: tt.asserts}
			if got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestCountLarge(t *testing.T) {
	t.Parallel()
	got := suite.Count("a_test.go", append([]byte("package a\n"), make([]byte, 2<<20)...))
	if got != (suite.Tests{Unread: true}) {
		t.Errorf("%+v", got)
	}
}

// hostile are texts for which a lexer that searches at each step takes quadratic time.
var hostile = []string{"/[", "=/", "`${", "<<A\n", "<<A ", "'a", "/*", `"""`, "'''", "r#\"", "func TestA(", "def test_(", "it(\"", "@Test ",
	"#[test]", "\\", "{", "}`", "//go:build (", "x.", "\n", "(", "#", "'\\", "[Fact]", "\"\n", "it.each", "/(?", "$#", "=begin\n", "\n=begin"}

// The time is linear in the size of the text, whatever its content.
func TestCountTime(t *testing.T) {
	t.Parallel()
	for _, file := range sources {
		for _, part := range hostile {
			text := bytes.Repeat([]byte(part), (1<<15)/len(part))
			begin := time.Now()
			suite.Count(file, text)
			if took := time.Since(begin); took > 3*time.Second { // linear time is a twentieth of a second, quadratic time some seconds
				t.Errorf("%s of %q: %v", file, part, took)
			}
		}
	}
}

// sources are test files, one for each language.
var sources = []string{"a_test.go", "a.test.ts", "test_a.py", "tests/a.rs", "src/test/java/ATest.java", "spec/a_spec.rb", "tests/ATest.php",
	"tests/ATests.cs", "tests/a.sh"}

func FuzzCount(f *testing.F) {
	for _, part := range hostile {
		f.Add([]byte(strings.Repeat(part, 3)))
	}
	f.Add([]byte("package a\nfunc TestA(t *testing.T) { t.Skip(`x`) }"))
	f.Add([]byte("it('a', () => { expect(`${a}`).toBe(/x/) })"))
	f.Add([]byte("@skip\ndef test_a():\n  '''x'''\n  return"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, file := range sources {
			got := suite.Count(file, text)
			// No count exceeds the size of the text, as it would if a part were read repeatedly.
			if got.Tests < 0 || got.Tests > len(text) || got.Skipped > 2*len(text) || got.Assertions > len(text) || got.Focused > len(text) {
				t.Fatalf("%s: %+v of %d bytes", file, got, len(text))
			}
			s := suite.Compare([]suite.Change{{Path: file, Old: text, New: text}}, nil)
			if len(s.Findings) != 0 && !shadows(s) || s.Added+s.Removed+s.Skipped+s.Assertions != 0 {
				t.Fatalf("%s: no change is %+v", file, s)
			}
		}
	})
}

func shadows(s suite.Summary) bool { return s.Findings[0].Kind == suite.Shadowing }
