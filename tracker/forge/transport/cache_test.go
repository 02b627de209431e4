package transport

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// tagged answers with a body and its ETag, or with "not modified".
func tagged(w http.ResponseWriter, r *http.Request, body string) {
	tag := fmt.Sprintf("%q", body)
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Link", `<http://x/?page=2>; rel="next"`)
	writeJSON(w, 200, `{"v":"`+body+`"}`)
}

func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	body := "one"
	answer := func(_ int, w http.ResponseWriter, r *http.Request) { tagged(w, r, body+r.Header.Get("Authorization")) }
	g := newRig(t, Config{CacheDir: dir}, answer)
	want := func(token, body string, conditional bool) {
		t.Helper()
		g.reopen(Config{CacheDir: dir, Source: fixedToken(token)})
		status, got, err := g.get("/x?page=1")
		if err != nil || status != 200 || got != `{"v":"`+body+`"}` {
			t.Errorf("%d %s, %v; want %s", status, got, err, body)
		}
		if sent := g.requests[len(g.requests)-1].Header.Get("If-None-Match") != ""; sent != conditional {
			t.Errorf("conditional is %v", sent)
		}
	}
	want("a", "oneBearer a", false)
	want("a", "oneBearer a", true)
	want("b", "oneBearer b", false) // another identity's answer is not reused
	want("a", "oneBearer a", true)
	body = "two"
	want("a", "twoBearer a", true)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("files: %v, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Stat(f); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f, info.Mode())
		}
		if err := os.WriteFile(f, b[:len(b)-1], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want("a", "twoBearer a", false)
}

func TestNotKept(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter){
		"no tag":    func(w http.ResponseWriter) { writeJSON(w, 200, `{}`) },
		"a refusal": func(w http.ResponseWriter) { w.Header().Set("ETag", `"x"`); writeJSON(w, 404, `{}`) },
		"no JSON":   func(w http.ResponseWriter) { w.Header().Set("ETag", `"x"`); _, _ = w.Write([]byte("plain text here")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			g := newRig(t, Config{CacheDir: dir}, func(_ int, w http.ResponseWriter, _ *http.Request) { answer(w) })
			if _, _, err := g.get("/x"); err != nil {
				t.Fatal(err)
			}
			if files, _ := os.ReadDir(dir); len(files) != 0 {
				t.Errorf("kept %v", files)
			}
		})
	}
}
