package sbx

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestTrailer(t *testing.T) {
	t.Parallel()
	const begin = "\x00ralph-ID "
	for name, tt := range map[string]struct {
		in, out string
		want    trailer
		ok      bool
	}{
		"alone":         {begin + "exit 0\n", "", trailer{}, true},
		"after output":  {"text" + begin + "exit 7\n", "text", trailer{code: 7}, true},
		"refused":       {begin + "refused missing\n", "", trailer{refused: "missing"}, true},
		"none":          {"text", "text", trailer{}, false},
		"cut":           {"text" + begin + "exit 7", "text" + begin + "exit 7", trailer{}, false},
		"not the last":  {begin + "exit 0\nmore" + begin + "exit 1\n", begin + "exit 0\nmore", trailer{code: 1}, true},
		"more after it": {begin + "exit 0\nmore", begin + "exit 0\nmore", trailer{}, false},
		"no status":     {begin + "exit 256\n", begin + "exit 256\n", trailer{}, false},
		"another's":     {"\x00ralph-XY exit 0\n", "\x00ralph-XY exit 0\n", trailer{}, false},
	} {
		for _, size := range []int{1, 3, len(tt.in)} {
			var out bytes.Buffer
			tr := newTrailerReader(&out, "ID")
			for p := range chunks(tt.in, size) {
				_, _ = tr.Write(p)
			}
			got, ok := tr.end()
			if got != tt.want || ok != tt.ok || out.String() != tt.out {
				t.Errorf("%s by %d: %+v, %v, output %q", name, size, got, ok, &out)
			}
		}
	}
}

func chunks(text string, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(text) > 0 {
			n := min(size, len(text))
			if !yield([]byte(text[:n])) {
				return
			}
			text = text[n:]
		}
	}
}

// Whatever is written, in whatever pieces: everything except a trailer passes, and little is held back.
func FuzzTrailer(f *testing.F) {
	f.Add("text\x00ralph-ID exit 7\n", 3)
	f.Add("\x00ralph-\x00ralph-ID \x00ralph-ID exit 1\n", 1)
	f.Fuzz(func(t *testing.T, in string, size int) {
		var out bytes.Buffer
		tr := newTrailerReader(&out, "ID")
		for p := range chunks(in, max(size, 1)) {
			if n, err := tr.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			if len(tr.pending) > len(tr.begin)+maxTrailer {
				t.Fatalf("%d bytes are held back", len(tr.pending))
			}
		}
		_, ok := tr.end()
		rest, found := strings.CutPrefix(in, out.String())
		if !found || ok != (rest != "") {
			t.Errorf("output %q of %q, trailer %v", &out, in, ok)
		}
	})
}

func FuzzUser(f *testing.F) {
	f.Add("1000\n1000\n1000 27\nCapBnd:\t00000000a80425fb\nHOME=/home/agent\x00A=b\nc\x00PWD=/\x00")
	f.Add("0\n0\n0\nCapBnd:\t000001ffffffffff\n")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := readUser(text)
		if err != nil {
			return
		}
		for _, word := range []string{u.uid, u.gid, u.groups} {
			if word == "" || strings.Trim(word, "0123456789,") != "" {
				t.Errorf("%q names the user %+v", text, u)
			}
		}
		if _, err := script("/", u.env, []string{"true"}); err != nil || len(u.env) == 0 {
			t.Errorf("its environment cannot be set: %v, %q", err, u.env)
		}
	})
}

func TestReadUser(t *testing.T) {
	t.Parallel()
	u, err := readUser("1000\n1001\n1001 27\nCapBnd:\t00000000a80425fb\nHOME=/home/agent\x00A=b\nc\x00PWD=/\x00BAD-NAME=x\x00")
	want := user{uid: "1000", gid: "1001", groups: "1001,27", bounds: 0xa80425fb, env: []string{"HOME=/home/agent", "A=b\nc"}}
	if err != nil || !reflect.DeepEqual(u, want) {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := readUser("OCI runtime exec failed\n"); err == nil {
		t.Error("an error message is taken for a user")
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(`{"sandboxes":[{"name":"a"}]}`)
	f.Add("Starting\n" + `{"secrets":[{"scope":"global","name":"openai"}]}`)
	f.Add(`{"checks":[{"name":"KVM","status":"fail"}]}`)
	f.Add("sbx version: v0.46.0")
	f.Add(`{"blocked_hosts":[{"host":"a.example:443","vm_name":"a","rule":"<default policy>","count_since":3}],"allowed_hosts":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		names, err := readNames(text)
		if err != nil && names != nil {
			t.Error("names and an error")
		}
		if has, err := listsSecret(text, "openai"); has && !strings.Contains(text, "{") {
			t.Errorf("it holds a secret that is not listed: %v", err)
		}
		if findings, err := readFindings(text); err == nil && len(findings) == 0 {
			t.Error("no findings, and no error")
		}
		_ = newEnough(text)
		refused, err := readRefusals(text, "a")
		for i, r := range refused {
			if err != nil || r.Count < 1 || strings.ContainsFunc(r.Host+r.Reason, func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune("<>@#`", c) }) {
				t.Errorf("refusal %+v, %v", r, err)
			}
			if i > 0 && r.Count > refused[i-1].Count {
				t.Errorf("they are not in order: %+v", refused)
			}
		}
	})
}
