package git

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"testing"
)

func FuzzValidRef(f *testing.F) {
	for _, seed := range []string{
		"main", "a/b", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a..b", "a@{b", "@", "a b", "a~", "a\x7f", "é", "-a", "a.", "a/", "a\\b", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.ContainsRune(name, 0) || len(name) > 1000 {
			return // cannot be passed to a program
		}
		ref := Heads + name
		accepted := exec.Command("git", "check-ref-format", ref).Run() == nil
		if ValidRef(ref) != accepted {
			t.Errorf("ValidRef(%q) = %v, git says %v", ref, !accepted, accepted)
		}
	})
}

func FuzzParsers(f *testing.F) {
	f.Add("aaa commit 14\ntree x\n\nhello\n\nbbb missing\n")
	f.Add("fatal: \x1b[31mno\n")
	f.Fuzz(func(t *testing.T, out string) {
		_ = parseObjects(bufio.NewReader(strings.NewReader(out)), func(o Object, content io.Reader) error {
			if n, _ := io.Copy(io.Discard, content); n > o.Size {
				t.Errorf("%d bytes of %d", n, o.Size)
			}
			return nil
		})
		if line := (&Error{Args: []string{"x"}, Stderr: out}).Error(); strings.ContainsAny(line, "\n\x1b") {
			t.Errorf("unsafe error %q", line)
		}
	})
}

// FuzzConfig parses a list of git's so that it can be written again.
func FuzzConfig(f *testing.F) {
	f.Add("file:/c\x00core.autocrlf\ninput\x00file:c\x00filter.a.b \"c\".clean\ntr \\ \t \"\n \x00command line:\x00core.bare\x00")
	f.Fuzz(func(t *testing.T, out string) {
		var config Config
		for _, s := range parseConfig(out, "/") {
			config = append(config, s.Setting)
			section, subsection, key := s.Split()
			if strings.Contains(section, ".") || strings.Contains(key, ".") || len(subsection) > len(s.Name) {
				t.Errorf("%q is split into %q, %q, %q", s.Name, section, subsection, key)
			}
		}
		config.WithoutPrograms()
	})
}

func TestCheckBranch(t *testing.T) {
	t.Parallel()
	for _, branch := range []string{"", "-f", "HEAD", "a..b", "a b", "a/", "a@{b"} {
		if CheckBranch(branch) == nil {
			t.Errorf("branch %q is accepted", branch)
		}
	}
}
