package leak

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzRedact: however a text is cut into pieces, the stream shows what Replace shows, and never the secret.
func FuzzRedact(f *testing.F) {
	f.Add("say hunter22 twice: hunter22", "hunter22", 5)
	f.Add("aaaaaaaaab", "aaaaaaaab", 1)
	f.Add("hunter22plus and hunter22", "hunter22", 3)
	f.Add("", "hunter22", 3)
	f.Fuzz(func(t *testing.T, text, secret string, size int) {
		if len(text)+len(secret) > 4<<10 {
			return // more of the same
		}
		finder := New([]string{secret, "hunter22plus"})
		want := string(finder.Replace([]byte(text), "[secret]"))
		if v, ok := value(secret); ok {
			for piece := range strings.SplitSeq(want, "[secret]") {
				if strings.Contains(piece, v) {
					t.Errorf("%q shows %q", want, v)
				}
			}
		}
		var out bytes.Buffer
		w := finder.Redact(&out, "[secret]")
		size = max(1, size%16)
		for b := []byte(text); len(b) > 0; b = b[min(size, len(b)):] {
			if _, err := w.Write(b[:min(size, len(b))]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("in pieces of %d it is %q, at once %q", size, &out, want)
		}
	})
}

func TestRedactForms(t *testing.T) {
	t.Parallel()
	finder := New([]string{"s3cret\"value", "hunter22", "hunter22plus", "short"})
	for text, want := range map[string]string{
		"a s3cret\"value b":      "a [secret] b",
		`{"t":"s3cret\"value"}`:  `{"t":"[secret]"}`,
		"q=s3cret%22value&":      "q=[secret]&",
		"czNjcmV0InZhbHVl.":      "[secret].",
		"hunter22hunter22":       "[secret][secret]",
		"hunter22plus, hunter22": "[secret], [secret]",
		"hunter2 short":          "hunter2 short",
	} {
		if got := string(finder.Replace([]byte(text), "[secret]")); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestSecretName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"API_TOKEN": true, "db_password": true, "X_KEY": true, "OPENAI_APIKEY": true, "PRIVATE_KEY_FILE": true,
		"MONKEY": false, "PATH": false, "KEYBOARD": false, "HOME": false,
	} {
		if got := SecretName(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
