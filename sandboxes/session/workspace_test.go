package session_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/session"
)

// place is a workspace in a folder, with a secret beside it and links of every kind to the secret.
type place struct {
	*session.Workspace
	dir, secret string
}

const secretText = "the secret beside the workspace"

func newPlace(t testing.TB) place {
	t.Helper()
	top := t.TempDir()
	p := place{dir: filepath.Join(top, "workspace"), secret: filepath.Join(top, "secret")}
	if err := os.MkdirAll(filepath.Join(p.dir, "sub/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(top, "outside"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		p.secret: secretText, filepath.Join(top, "outside/file"): secretText, filepath.Join(p.dir, "file"): "own", filepath.Join(p.dir, "sub/deep/x.go"): "x",
	} {
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"out": "../secret", "abs": p.secret, "outdir": "../outside", "absdir": filepath.Join(top, "outside"), "loop": "loop",
		"sub/up": "../../outside", "chain": "sub/up/file", "in": "file", "indir": "sub",
	} {
		if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := session.OpenWorkspace(p.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	p.Workspace = w
	return p
}

// untouched checks that the files beside the workspace are unchanged.
func (p place) untouched(t *testing.T) {
	t.Helper()
	top := filepath.Dir(p.dir)
	var got []string
	for _, dir := range []string{top, filepath.Join(top, "outside")} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, e.Name())
		}
	}
	if want := []string{"outside", "secret", "workspace", "file"}; !slices.Equal(got, want) {
		t.Fatalf("beside the workspace are %q, want %q", got, want)
	}
	for _, path := range []string{p.secret, filepath.Join(top, "outside/file")} {
		if text, err := os.ReadFile(path); err != nil || string(text) != secretText {
			t.Fatalf("%s is %q, %v", path, text, err)
		}
	}
}

// tryAll tries every operation on a path.
func (p place) tryAll(t *testing.T, name string) {
	t.Helper()
	read := func() {
		if content, err := p.GetBytes(name); err == nil && strings.Contains(string(content), secretText) {
			t.Errorf("%q gives the secret", name)
		}
	}
	read()
	if err := p.PutBytes(name, []byte("put")); err == nil {
		if got, err := p.GetFile(name); err != nil || got != "put" {
			t.Errorf("%q was put and is %q, %v", name, got, err)
		}
	}
	p.untouched(t)
	read()
	_ = p.DeleteFile(name)
	p.untouched(t)
	if list, err := p.ListFiles(name); err == nil {
		for _, f := range list {
			if content, err := p.GetBytes(f); err == nil && strings.Contains(string(content), secretText) {
				t.Errorf("%q lists %q, which gives the secret", name, f)
			}
		}
	}
}

// hostile returns paths that lead out of the workspace, or try to.
func hostile() []string {
	return []string{
		"../secret", "/etc/passwd", "..", ".", "", "sub/../../secret", "out", "abs", "outdir/file", "absdir/file", "outdir/new", "sub/up/file",
		"chain", "loop", "loop/x", "in", "indir/deep/x.go", "indir/up/file", "file/x", "sub/", "./file", "a//b", "a\x00b", ".git", ".GIT/config",
		"sub/.git/hooks/x", strings.Repeat("a", 300), strings.Repeat("a/", 3000) + "b", "sub/deep", "-rf", "new\nline", "..file", `..\secret`, "\xff",
	}
}

func TestPathsStayInside(t *testing.T) {
	t.Parallel()
	for _, name := range hostile() {
		t.Run(name[:min(len(name), 40)], func(t *testing.T) {
			t.Parallel()
			newPlace(t).tryAll(t, name)
		})
	}
}

// Links that commands created never lead to git's own files, wherever they are in a path.
func TestNoLinkLeadsToGit(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, filepath.Join(p.dir, ".git/config"), secretText)
	write(t, filepath.Join(p.dir, "sub/.git"), secretText)
	for name, to := range map[string]string{
		"repo": ".git", "config": ".git/config", "sub/repo": "../repo", "linked": "sub/.git", "sub/far": "deep/../../repo/config", "dot": ".",
	} {
		if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"repo/config", "config", "sub/repo/config", "linked", "sub/far", "indir/repo/config", "dot/repo/config"} {
		if got, err := p.GetFile(name); !errors.Is(err, session.ErrPath) {
			t.Errorf("%s reads %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"repo/config", "repo/hooks/pre-commit", "sub/repo/config", "indir/repo/new", "dot/repo/config"} {
		if err := p.PutFile(name, "put"); !errors.Is(err, session.ErrPath) {
			t.Errorf("put %s: %v", name, err)
		}
		if err := p.DeleteFile(name); !errors.Is(err, session.ErrPath) {
			t.Errorf("delete %s: %v", name, err)
		}
	}
	if got, err := p.GetFile("dot/indir/deep/x.go"); err != nil || got != "x" {
		t.Errorf("by links inside: %q, %v", got, err)
	}
	if got, err := p.ListFiles(session.AllFiles); err != nil || !slices.Equal(got, []string{"file", "in", "sub/deep/x.go"}) {
		t.Errorf("listed are %q, %v", got, err)
	}
	if err := p.PutFile("config", "a file now"); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(filepath.Join(p.dir, ".git"))
	if text, readErr := os.ReadFile(filepath.Join(p.dir, ".git/config")); err != nil || len(entries) != 1 || string(text) != secretText {
		t.Errorf("the git directory has %v, %v; config is %q, %v", entries, err, text, readErr)
	}
}

// Enter does not wait for a named pipe that has replaced a folder.
func TestPipeInThePlaceOfAFolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if err := unix.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(p.dir) // info of a folder that was there before
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, name := range []string{"pipe", "sub", "indir"} {
		if below, err := session.Enter(root, name, info); err == nil {
			_ = below.Close()
			t.Errorf("%s is entered for another folder", name)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, name := range hostile() {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) { newPlace(t).tryAll(t, name) })
}

func TestFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(p.PutFile("new/folder/text", "é"))
	if got, err := p.GetFile("new/folder/text"); err != nil || got != "é" {
		t.Errorf("%q, %v", got, err)
	}
	must(os.Chmod(filepath.Join(p.dir, "file"), 0o751))
	must(p.PutBytes("file", []byte("\xff")))
	if info, err := os.Stat(filepath.Join(p.dir, "file")); err != nil || info.Mode() != 0o751 {
		t.Errorf("the permissions are %v, %v", info.Mode(), err)
	}
	if _, err := p.GetFile("file"); err == nil || err.Error() != `get "file": it is not text in UTF-8; read it as bytes` {
		t.Errorf("error is %v", err)
	}
	must(p.PutFile("in", "a file now"))
	if info, err := os.Lstat(filepath.Join(p.dir, "in")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	must(p.DeleteFile("out"))
	must(p.DeleteFile("new/folder/text"))
	for name, want := range map[string]error{"sub": session.ErrPath, "../secret": session.ErrPath, ".git/config": session.ErrPath, "gone": fs.ErrNotExist} {
		if err := p.DeleteFile(name); !errors.Is(err, want) {
			t.Errorf("delete %s: %v", name, err)
		}
	}
	must(unix.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600))
	if _, err := p.GetBytes("pipe"); !errors.Is(err, session.ErrPath) {
		t.Errorf("read a pipe: %v", err)
	}
	must(p.PutFile("pipe", "a file now"))
	small, err := session.OpenWorkspace(p.dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { must(small.Close()) }()
	if _, err := small.GetBytes("pipe"); !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("read a large file: %v", err)
	}
}

func TestListFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, name := range []string{".git/config", "sub/.git", "a/b/c/x.go", "a/x.go", "a/.hidden"} {
		write(t, filepath.Join(p.dir, name), "")
	}
	for pattern, want := range map[string]string{
		session.AllFiles: "a/.hidden a/b/c/x.go a/x.go file in sub/deep/x.go",
		"**":             "a/.hidden a/b/c/x.go a/x.go file in sub/deep/x.go",
		"*":              "file in", "*.go": "", "**/*.go": "a/b/c/x.go a/x.go sub/deep/x.go", "a/**/x.go": "a/b/c/x.go a/x.go", "a/**": "a/.hidden a/b/c/x.go a/x.go",
		"**/b/**/x.go": "a/b/c/x.go", "a/*/c/*": "a/b/c/x.go", "**/c": "", "indir/**": "", "../*": "", "[fi]*": "file in", "**/**/c/**/*.go": "a/b/c/x.go",
	} {
		if got, err := p.ListFiles(pattern); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s lists %q, %v; want %s", pattern, got, err, want)
		}
	}
	if _, err := p.ListFiles(""); err == nil {
		t.Error("the empty pattern is accepted")
	}
}

// endless is a folder with an endless number of files.
type endless struct{ fs.ReadDirFile }

func (endless) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		return nil, errors.New("all at once")
	}
	return make([]fs.DirEntry, n), nil
}

// Entries are counted before the folder has been read to its end.
func TestListFilesReadsInParts(t *testing.T) {
	t.Parallel()
	seen, enough := 0, errors.New("enough")
	err := session.Entries(endless{}, func(fs.DirEntry) error {
		if seen++; seen > 2500 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("after %d entries: %v", seen, err)
	}
	p := newPlace(t)
	for _, name := range []string{"x/1", "x.go", "x-y/1", "x/a.go"} {
		write(t, filepath.Join(p.dir, name), "")
	}
	if got, err := p.ListFiles("x*/**"); err != nil || strings.Join(got, " ") != "x/1 x/a.go x-y/1 x.go" {
		t.Errorf("%q, %v", got, err)
	}
}

// Files that are too deep to be read are not listed either.
func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	deepest := strings.Repeat("d/", 100) + "f"
	if err := p.PutFile(deepest, ""); err != nil {
		t.Fatal(err)
	}
	if err := p.PutFile("d/"+deepest, ""); !errors.Is(err, session.ErrPath) {
		t.Errorf("put a file deeper: %v", err)
	}
	write(t, filepath.Join(p.dir, "d", deepest), "")
	if got, err := p.ListFiles("d/**"); err != nil || !slices.Equal(got, []string{deepest}) {
		t.Errorf("listed are %q, %v", got, err)
	}
}

// Text survives a round trip through another encoding, or the operation fails.
func TestEncodings(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, tt := range []struct{ charset, text, bytes, putError, getError string }{
		{charset: "utf-8", text: "é€", bytes: "é€"},
		{charset: "iso-8859-1", text: "é", bytes: "\xe9"},
		{charset: "latin1", text: "é", bytes: "\xe9"},
		{charset: "windows-1252", text: "€", bytes: "\x80"},
		{charset: "shift_jis", text: "日本", bytes: "\x93\xfa\x96\x7b"},
		{charset: "utf-16", text: "é", bytes: "\xfe\xff\x00\xe9"},
		{charset: "iso-8859-1", text: "€", bytes: "\xa4", putError: `put "f" in iso-8859-1: encoding: rune not supported by encoding.`},
		{charset: "shift_jis", text: "日", bytes: "\x93", getError: `get "f": it is not text in SHIFT_JIS; read it as bytes`},
		{charset: "klingon", putError: `put "f" in klingon: encoding "klingon": `, getError: `get "f": encoding "klingon": `},
	} {
		err := p.PutFileIn("f", tt.text, tt.charset)
		got, _ := p.GetBytes("f")
		if tt.putError == "" && tt.getError == "" && (err != nil || string(got) != tt.bytes) {
			t.Errorf("%s: %q is put as %q, %v", tt.charset, tt.text, got, err)
		} else if tt.putError != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.putError)) {
			t.Errorf("%s: put gives %v", tt.charset, err)
		}
		if err := p.PutBytes("f", []byte(tt.bytes)); err != nil {
			t.Fatal(err)
		}
		text, err := p.GetFileIn("f", tt.charset)
		if tt.getError == "" && tt.putError == "" && (err != nil || text != tt.text) {
			t.Errorf("%s: %q is read as %q, %v", tt.charset, tt.bytes, text, err)
		} else if tt.getError != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.getError)) {
			t.Errorf("%s: get gives %q, %v", tt.charset, text, err)
		}
	}
}
