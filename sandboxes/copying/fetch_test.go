package copying

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
)

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// Harmless files of commands are copied to the host; all others are refused, and the host's own files stay.
func TestFetch(t *testing.T) {
	t.Parallel()
	worktree, e := t.TempDir(), newEngine(t)
	box, err := Wrap(e).Open(t.Context(), sandboxes.Spec{Run: "fetch", Worktree: worktree, Mounts: []sandboxes.Mount{{Host: t.TempDir(), Inside: "/artefacts", Exclusive: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close(t.Context()) })
	inside := filepath.Join(e.root, worktree)
	tree(t, inside, map[string]string{
		"a": "one", "dir/b": "two", "empty": "folder", "in": "-> dir/b", "out": "-> /etc/passwd", "up": "-> dir/../../x", "sub/.GIT/config": "no",
		"link": "-> .git/config", "pipe": "pipe", "-name": "dash",
	})
	if err := os.Link(filepath.Join(inside, "dir/b"), filepath.Join(inside, "hard")); err != nil {
		t.Fatal(err)
	}
	tree(t, filepath.Join(e.root, "artefacts"), map[string]string{"report": "text"})
	fetcher, ok := sandboxes.As[sandboxes.Fetcher](box)
	if !ok {
		t.Fatal("the sandbox is no Fetcher")
	}
	host := tree(t, t.TempDir(), map[string]string{"a": "old", "own": "of the host"})
	err = fetcher.Fetch(t.Context(), []string{"."}, openRoot(t, host), sandboxes.FetchLimits{})
	if refused, ok := errors.AsType[*sandboxes.RefusedError](err); !ok || refused.Count != 6 || !strings.Contains(err.Error(), "6 of the sandbox's files were refused; first: ") {
		t.Errorf("error is %v", err)
	}
	want := map[string]string{"a": "one", "dir/b": "two", "empty": "folder", "in": "-> dir/b", "own": "of the host", "sub": "folder", "hard": "two", "-name": "dash"}
	if got := content(t, host); !maps.Equal(got, want) {
		t.Errorf("the host has %q", got)
	}
	host = t.TempDir()
	if err := fetcher.Fetch(t.Context(), []string{"/artefacts", "dir", "-name"}, openRoot(t, host), sandboxes.FetchLimits{}); err != nil {
		t.Error(err)
	}
	if got := content(t, host); !maps.Equal(got, map[string]string{"report": "text", "dir/b": "two", "-name": "dash"}) {
		t.Errorf("the host has %q", got)
	}
	for want, limits := range map[string]sandboxes.FetchLimits{
		"there are more than 3 files and folders": {Entries: 3}, "there are more than 5 bytes": {Bytes: 5},
	} {
		if err := fetcher.Fetch(t.Context(), []string{"."}, openRoot(t, t.TempDir()), limits); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
	err = fetcher.Fetch(t.Context(), []string{"none"}, openRoot(t, t.TempDir()), sandboxes.FetchLimits{})
	if err == nil || !strings.Contains(err.Error(), "copy files out of the sandbox: tar inside ends with status 2") {
		t.Errorf("error is %v", err)
	}
}

// stream returns a tar stream of these headers, with contents of "x".
func stream(headers ...tar.Header) *bytes.Buffer {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if w.WriteHeader(&h) == nil {
			_, _ = w.Write(bytes.Repeat([]byte("x"), int(h.Size)))
		}
	}
	_ = w.Close()
	return &b
}

// Every entry that could reach out of the folder, or into a git directory, is refused.
func TestHostileEntries(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 3, Mode: 0o4777}
	}
	link := func(target string) tar.Header {
		return tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: target}
	}
	for name, h := range map[string]tar.Header{
		"up": file("../f"), "absolute": file("/tmp/f"), "up again": file("a/../../f"), "git": file(".git/config"), "Git": file(".GiT/config"),
		"NTFS": file("git~1/config"), "padded": file(".git /config"), "dots": file(".git../config"), "stream": file(".git::$INDEX_ALLOCATION/x"),
		"HFS": file(".g\u200cit/config"), "BOM": file("\ufeff.git/config"), "backslash": file(`.git\config`), "long": file(strings.Repeat("n", 256)),
		"deep": file(strings.Repeat("d/", 300) + "f"), "reserved": file(tempName), "the folder itself": file("."), "below a file": file("kept/f"),
		"below a link out": file("real/f"), "in place of a folder": file("full"), "link to root": link("/etc"), "link up": link("../x"), "link down and up": link("a/../../x"),
		"link to git": link(".git"), "link into git": link("sub/.GIT/config"), "link to nothing": link(""),
		"link in place of a folder": {Name: "full", Typeflag: tar.TypeSymlink, Linkname: "kept"},
		"hard link out":             {Name: "f", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"},
		"hard link through a link":  {Name: "f", Typeflag: tar.TypeLink, Linkname: "real"},
		"device":                    {Name: "f", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		"pipe":                      {Name: "f", Typeflag: tar.TypeFifo},
	} {
		above := t.TempDir()
		host := filepath.Join(above, "host")
		before := map[string]string{"kept": "kept", "real": "-> /tmp", "full/.git": "of the host"}
		tree(t, host, before)
		r := newReceiver(openRoot(t, host), sandboxes.FetchLimits{})
		if err := r.read(stream(h)); err != nil || r.refused.Count != 1 {
			t.Errorf("%s: refused %+v, %v", name, r.refused, err)
		}
		got := content(t, host)
		maps.DeleteFunc(got, func(_, text string) bool { return text == "folder" })
		if !maps.Equal(got, before) {
			t.Errorf("%s: the host has %q", name, got)
		}
		if entries, _ := os.ReadDir(above); len(entries) != 1 {
			t.Errorf("%s: beside the folder there are %v", name, entries)
		}
	}
}

// No entry is written through a link on the host: it could lead into the host's git directory.
func TestNothingPassesLinks(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 3, Mode: 0o755}
	}
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	before := map[string]string{
		".git/hooks": "folder", ".git/config": "of the host", "hooks": "-> .git/hooks", "repo": "-> .git",
		"config": "-> .git/config", "on": "-> ./repo", "far/out": "-> ../../outside", "loop": "-> loop", "crooked": "-> far/../../x",
	}
	for name, tt := range map[string]struct {
		entries []tar.Header
		added   map[string]string
	}{
		"a file":             {[]tar.Header{file("./hooks/pre-commit")}, nil},
		"a folder":           {[]tar.Header{{Name: "repo/new/", Typeflag: tar.TypeDir, Mode: 0o755}}, nil},
		"a link":             {[]tar.Header{link("repo/hooks/l", "x")}, nil},
		"a hard link":        {[]tar.Header{{Name: "f", Typeflag: tar.TypeLink, Linkname: "repo/config"}}, nil},
		"a hard link to one": {[]tar.Header{{Name: "f", Typeflag: tar.TypeLink, Linkname: "config"}}, nil},
		"a file far below":   {[]tar.Header{file("repo/hooks/a/b/c")}, nil},
		"a link by a link":   {[]tar.Header{link("d/l", "../repo/config")}, map[string]string{"d": "folder"}},
		"a link out by one":  {[]tar.Header{link("l", "far/out/secret")}, nil},
		"a link up and down": {[]tar.Header{link("l", "crooked")}, nil},
		"one by two":         {[]tar.Header{link("l", "d/m"), link("d/m", "../on/hooks")}, map[string]string{"d": "folder", "l": "-> d/m"}},
		"the stream's links": {[]tar.Header{link("a", "."), link("a/a/l", "../../secret")}, map[string]string{"a": "-> ."}},
	} {
		host := tree(t, t.TempDir(), before)
		r := newReceiver(openRoot(t, host), sandboxes.FetchLimits{})
		if err := r.read(stream(tt.entries...)); err != nil || r.refused.Count != 1 {
			t.Errorf("%s: refused %+v, %v", name, r.refused, err)
		}
		want := maps.Clone(before)
		maps.Copy(want, tt.added)
		if got := content(t, host); !maps.Equal(got, want) {
			t.Errorf("%s: the host has %q", name, got)
		}
	}
	host := tree(t, t.TempDir(), before)
	r := newReceiver(openRoot(t, host), sandboxes.FetchLimits{})
	if err := r.read(stream(tar.Header{Name: "hooks/", Typeflag: tar.TypeDir, Mode: 0o755}, file("hooks/f"))); err != nil || r.refused.Count != 0 {
		t.Errorf("a folder in place of a link: refused %+v, %v", r.refused, err)
	}
	if got := content(t, host); got["hooks/f"] != "xxx" || got[".git/hooks"] != "folder" {
		t.Errorf("a folder in place of a link: the host has %q", got)
	}
}

// Parent folders without an entry count, too.
func TestFoldersAboveCount(t *testing.T) {
	t.Parallel()
	deep := tar.Header{Name: strings.Repeat("d/", 20) + "f", Typeflag: tar.TypeReg}
	for limit, want := range map[int]string{20: "there are more than 20 files and folders", 21: ""} {
		err := newReceiver(openRoot(t, t.TempDir()), sandboxes.FetchLimits{Entries: limit}).read(stream(deep))
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("at most %d: %v", limit, err)
		}
	}
}

func TestHostileStreams(t *testing.T) {
	t.Parallel()
	limits := sandboxes.FetchLimits{File: 5, Bytes: 10, Entries: 3}
	r := newReceiver(openRoot(t, t.TempDir()), limits)
	if err := r.read(stream(tar.Header{Name: "big", Typeflag: tar.TypeReg, Size: 6})); err != nil || r.refused.Count != 1 {
		t.Errorf("a file that is too large: %+v, %v", r.refused, err)
	}
	half := stream(tar.Header{Name: "f", Typeflag: tar.TypeReg, Size: 5}).Bytes()
	broken, devices := errors.New("gone"), make([]tar.Header, 4)
	for i := range devices {
		devices[i] = tar.Header{Name: "x", Typeflag: tar.TypeFifo}
	}
	for name, tt := range map[string]struct {
		in   io.Reader
		want string
	}{
		"breaks":      {io.MultiReader(bytes.NewReader(half[:514]), failing{broken}), "gone"},
		"has no end":  {io.MultiReader(stream(), endless{}), "the stream does not end"},
		"is cut off":  {bytes.NewReader(half[:514]), "unexpected EOF"},
		"is no tar":   {strings.NewReader(strings.Repeat("x", 1024)), "invalid tar header"},
		"is too much": {stream(devices...), "there are more than 3 files and folders"},
	} {
		dir := t.TempDir()
		err := newReceiver(openRoot(t, dir), limits).read(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("a stream that %s: %v", name, err)
		}
		if got := content(t, dir); len(got) > 0 {
			t.Errorf("a stream that %s leaves %q", name, got)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A full disk is not the sandbox's fault: it is an error, not a refusal.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	r := newReceiver(openRoot(t, t.TempDir()), sandboxes.FetchLimits{})
	err := r.receiveEntry(&tar.Header{Name: "f", Typeflag: tar.TypeReg, Size: 3}, failing{&fs.PathError{Op: "write", Path: "f", Err: unix.ENOSPC}})
	if !errors.Is(err, unix.ENOSPC) || r.refused.Count > 0 {
		t.Errorf("error is %v, refused %+v", err, r.refused)
	}
}

// FuzzReceive reads any stream, and checks that nothing was written beside the folder or into a git directory.
func FuzzReceive(f *testing.F) {
	f.Add(stream(tar.Header{Name: "a/f", Typeflag: tar.TypeReg, Size: 1}).Bytes())
	f.Add(stream(tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: ".."}, tar.Header{Name: "a/f", Typeflag: tar.TypeReg, Size: 1}).Bytes())
	f.Add(stream(tar.Header{Name: "../f", Typeflag: tar.TypeLink, Linkname: "x"}).Bytes())
	f.Add(stream(tar.Header{Name: ".GIT/", Typeflag: tar.TypeDir}).Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		above := t.TempDir()
		host := filepath.Join(above, "host")
		if err := os.Mkdir(host, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = newReceiver(openRoot(t, host), sandboxes.FetchLimits{Entries: 100, File: 1 << 16, Bytes: 1 << 17}).read(bytes.NewReader(text))
		if entries, err := os.ReadDir(above); err != nil || len(entries) != 1 {
			t.Fatalf("beside the folder there are %v, %v", entries, err)
		}
		_ = filepath.WalkDir(host, func(path string, d fs.DirEntry, err error) error {
			if err == nil && (strings.EqualFold(d.Name(), ".git") || !d.IsDir() && !d.Type().IsRegular() && d.Type() != fs.ModeSymlink) {
				t.Fatalf("the host has %s, %v", path, d.Type())
			}
			return err
		})
	})
}
