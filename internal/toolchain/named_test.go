package toolchain

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Hosts in project files are kept apart from those of the user's tools.
func TestNamed(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct {
		shows, text string
		want        []Named
	}{
		".npmrc": {"package.json", "# registry=https://a.example\nregistry=https://npm.corp.example/\n@us:registry = \"https://us.example:8443/x\"\n" +
			"//npm.corp.example/:_authToken=https://b.example\nregistry=https://${HOST}.example\nregistry=https://a\x1b[31mb.example/\n",
			[]Named{{"npm.corp.example", ".npmrc"}, {"us.example:8443", ".npmrc"}}},
		"pip.conf": {"setup.py", "[global]\nindex-url = https://me:pw@pypi.corp.example/simple\nextra-index-url=https://more.example\ntimeout = 60\n",
			[]Named{{"pypi.corp.example", "pip.conf"}, {"more.example", "pip.conf"}}},
		"pyproject.toml": {"setup.py", "[project.urls]\nurl = \"https://home.example\"\n[[tool.uv.index]]\nname = \"x\"\nurl = \"https://uv.example/simple\"\n" +
			"[tool.ruff]\nurl = \"https://c.example\"\n", []Named{{"uv.example", "pyproject.toml"}}},
		".cargo/config.toml": {"Cargo.toml", "[registries.us]\nindex = \"sparse+https://crates.example/index/\"\n[net]\noffline = false\n",
			[]Named{{"crates.example", ".cargo/config.toml"}}},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{c.shows: "", file: c.text} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Propose(dir)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %+v, %v", file, got, err)
		}
		if diff := cmp.Diff(c.want, got[0].Named); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
		if source := got[0].Source(t.Context(), []string{"PATH=/nonexistent"}); len(source.Hosts) > 0 {
			t.Errorf("%s: hosts of the project are taken for the user's: %q", file, source.Hosts)
		}
	}
}
