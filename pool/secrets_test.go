package pool_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool"
)

// credential looks like one of a well-known kind.
const credential = "ghp_" + "k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw1Hd5Sg0AeUoI"

// says is an agent that puts what a script prints into a commit.
func says(script string) string {
	return "cat >/dev/null; { " + script + `; } > out; git add -A; git commit -qm work; echo "<promise>COMPLETE</promise>"`
}

func TestEncodedCredentialsAreBlocked(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"base64":         "printf %s " + credential + " | base64 -w 20",
		"gzip":           "printf %s " + credential + " | gzip -n",
		"gzip in base64": "printf %s " + credential + " | gzip -n | base64",
		"UTF-16":         "printf %s " + credential + " | iconv -t UTF-16",
		"hex":            "printf %s " + credential + " | od -An -v -tx1 | tr -d ' '",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, says(script))
			f.issue("sly")
			f.Config.Publish = pool.PublishMerge
			r := f.only(f.sweep(t.Context()))
			if r.Verdict.Outcome != pool.PolicyBlocked || !strings.Contains(r.Verdict.Reason, "out brings a secret") {
				t.Errorf("outcome %s: %s", r.Verdict.Outcome, r.Verdict.Reason)
			}
		})
	}
}

// A value that ralph obtains while a run is on is withheld from then on, wherever it would be seen.
func TestObtainedValuesAreWithheld(t *testing.T) {
	t.Parallel()
	const value = "minted-while-the-run-is-on-4711"
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	read := "$(cat " + file + ")"
	f := newFixture(t, `cat >/dev/null; echo "it is `+read+`"; echo "it is `+read+`" >&2; echo "`+read+`" | base64 > out
git add -A; git commit -qm work; echo "<promise>COMPLETE</promise>"`)
	f.issue("sly")
	f.Config.Publish, f.Config.Secrets = pool.PublishMerge, pool.NewSecrets()
	f.Config.Gate = lines("cat " + file)
	f.onStep = func(e pool.Event) {
		if e.Step == pool.StepLoop {
			f.Config.Secrets.Add(value)
		}
	}
	r := f.only(f.sweep(t.Context()))
	if r.Verdict.Outcome != pool.PolicyBlocked {
		t.Errorf("outcome %s: %s", r.Verdict.Outcome, r.Verdict.Reason)
	}
	for _, e := range f.events {
		if strings.Contains(e.Text, value) || e.Check != nil && strings.Contains(e.Check.Tail, value) {
			t.Errorf("event %+v", e)
		}
	}
	if strings.Contains(f.text("sly"), value) {
		t.Error("it is in the report")
	}
	seen := 0
	err := filepath.WalkDir(r.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(value)) {
			t.Errorf("it is in %s", filepath.Base(path))
		}
		seen += bytes.Count(content, []byte("[hidden]"))
		return err
	})
	if err != nil || seen == 0 {
		t.Errorf("masked %d times, %v", seen, err)
	}
}
