package mirror_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/mirror"
)

// pair is a host's folder and the one of a sandbox that keeps to the rules.
type pair struct {
	*testing.T
	host, inside string
	tree         *mirror.Tree
	there        *os.Root
	fetched      []string // what was asked for the last time
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{T: t, host: t.TempDir(), inside: t.TempDir()}
	p.tree, p.there = &mirror.Tree{Root: root(t, p.host), Links: true}, root(t, p.inside)
	return p
}

func root(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func (p *pair) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *pair) write(dir, name, text string) {
	p.Helper()
	p.must(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	p.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

// list is what the sandbox says, by way of its encoding. Files count as settled however young they are.
func (p *pair) list() []mirror.Entry {
	p.Helper()
	list, err := mirror.List(p.there, mirror.Skipping(nil))
	p.must(err)
	for i, e := range list {
		if info, err := p.there.Lstat(e.Path); err == nil && e.Kind == mirror.File {
			list[i].Mark = info.ModTime().Format("150405.000000000")
		}
	}
	var b bytes.Buffer
	p.must(mirror.Encode(&b, list))
	got, err := mirror.Decode(b.Bytes(), mirror.Limits{})
	p.must(err)
	return got
}

func (p *pair) send() {
	p.Helper()
	changed, gone, err := p.tree.Changed()
	p.must(err)
	p.must(mirror.Remove(p.there, gone))
	var b bytes.Buffer
	p.must(mirror.Pack(&b, p.tree.Root, changed))
	p.must(mirror.Unpack(&b, p.there))
	p.tree.Sent(changed, gone, p.list())
}

func (p *pair) fetch(paths []string) (io.ReadCloser, error) {
	p.fetched = paths
	var list []mirror.Entry
	for _, at := range paths {
		list = append(list, mirror.Entry{Path: at, Kind: mirror.File})
	}
	var b bytes.Buffer
	err := mirror.Pack(&b, p.there, list)
	return io.NopCloser(&b), err
}

func (p *pair) take() error {
	p.Helper()
	p.fetched = nil
	left, err := p.tree.Apply(p.Context(), p.list(), p.fetch)
	p.must(err)
	return left.Err()
}

// tree is what a folder holds, by path.
func (p *pair) content(dir string) map[string]string {
	p.Helper()
	got := map[string]string{}
	p.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			got[name] = "folder"
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			got[name] = "-> " + target
			return err
		case d.Type().IsRegular():
			text, err := os.ReadFile(path)
			got[name] = info.Mode().String()[1:4] + " " + string(text)
			return err
		default:
			got[name] = "special"
		}
		return nil
	}))
	return got
}

func (p *pair) same() {
	p.Helper()
	host, inside := p.content(p.host), p.content(p.inside)
	for name := range host {
		if host[name] != inside[name] {
			p.Errorf("%s is %q on the host and %q inside", name, host[name], inside[name])
		}
	}
	if len(host) != len(inside) {
		p.Errorf("the host has %d, the inside %d entries", len(host), len(inside))
	}
}

func TestBothWays(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.write(p.host, "a", "one")
	p.write(p.host, "dir/b", "two")
	p.write(p.host, "dir/deep/c", "")
	p.must(os.Symlink("dir/b", filepath.Join(p.host, "link")))
	p.must(os.Symlink("/etc/passwd", filepath.Join(p.host, "out")))
	p.must(os.Chmod(filepath.Join(p.host, "a"), 0o755))
	p.send()
	p.same()
	p.must(p.take())
	if len(p.fetched) > 0 {
		t.Errorf("%q came back unchanged", p.fetched)
	}
	p.write(p.inside, "a", "changed")
	p.write(p.inside, "new/file", "new")
	p.must(os.RemoveAll(filepath.Join(p.inside, "dir/deep")))
	p.must(os.Remove(filepath.Join(p.inside, "link")))
	p.write(p.inside, "link/now/a/folder", "x")
	p.must(os.RemoveAll(filepath.Join(p.inside, "dir")))
	p.write(p.inside, "dir", "now a file")
	p.must(p.take())
	p.same()
	if want := []string{"a", "dir", "link/now/a/folder", "new/file"}; !slices.Equal(p.fetched, want) {
		t.Errorf("fetched %q, want %q", p.fetched, want)
	}
	p.must(os.Chmod(filepath.Join(p.inside, "a"), 0o644))
	p.must(p.take())
	p.same()
	p.must(os.RemoveAll(filepath.Join(p.host, "link")))
	p.write(p.host, "a", "by the host")
	p.must(os.Remove(filepath.Join(p.host, "dir")))
	p.write(p.host, "dir/again", "y")
	p.send()
	p.same()
}

// What the host changes while the sandbox works is not lost, whatever the sandbox has.
func TestTheHostsOwnChangesStay(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, name := range []string{"a", "b", "c/d", "e"} {
		p.write(p.host, name, name)
	}
	p.send()
	p.write(p.host, "a", "by the host")
	p.write(p.host, "new/x", "by the host")
	p.must(os.Remove(filepath.Join(p.host, "b")))
	p.write(p.inside, "a", "by the sandbox")
	p.write(p.inside, "e", "by the sandbox")
	p.must(os.RemoveAll(filepath.Join(p.inside, "c")))
	p.must(p.take())
	p.send()
	p.same()
	if got := p.content(p.host); got["a"] != "rw- by the host" || got["e"] != "rw- by the sandbox" || got["new/x"] == "" || len(got) != 4 {
		t.Errorf("the host has %q", got)
	}
}

// git directories are neither sent nor taken nor removed, on either side.
func TestGitDirectoriesAreLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.write(p.host, ".git", "gitdir: elsewhere")
	p.write(p.host, "sub/.git/config", "of the host")
	p.send()
	if got := p.content(p.inside); len(got) != 1 {
		t.Errorf("inside there is %q", got)
	}
	p.write(p.inside, ".git/config", "hostile")
	p.must(os.RemoveAll(filepath.Join(p.inside, "sub")))
	p.must(p.take())
	if got := p.content(p.host); got[".git"] != "rw- gitdir: elsewhere" || got["sub/.git/config"] != "rw- of the host" {
		t.Errorf("the host has %q", got)
	}
	p.write(p.inside, "sub", "a file in the place of a folder that has to stay")
	if err := p.take(); err == nil {
		t.Error("it is not told")
	}
	if got := p.content(p.host); got["sub/.git/config"] != "rw- of the host" {
		t.Errorf("the host has %q", got)
	}
}

// Files that cannot be read inside, or are no files, are told; the host's own stay.
func TestWhatCannotBeTaken(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Log("root reads everything; the rest is tried all the same")
	}
	p := newPair(t)
	p.write(p.host, "a", "one")
	p.write(p.host, "big", "small")
	p.write(p.host, "dir/b", "two")
	p.send()
	p.must(os.Remove(filepath.Join(p.inside, "a")))
	p.must(unix.Mkfifo(filepath.Join(p.inside, "a"), 0o600))
	p.tree.Limits.File = 10
	p.write(p.inside, "big", "more than ten bytes")
	if os.Getuid() != 0 {
		p.must(os.Chmod(filepath.Join(p.inside, "dir"), 0))
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(p.inside, "dir"), 0o700) })
	}
	err := p.take()
	if err == nil || !strings.Contains(err.Error(), "of the sandbox's files are not taken; first: ") {
		t.Errorf("left is %v", err)
	}
	got := p.content(p.host)
	if _, ok := got["a"]; ok || got["big"] != "rw- small" || got["dir/b"] != "rw- two" {
		t.Errorf("the host has %q", got)
	}
}

// hostile is what a sandbox says that keeps to no rule: its list, and the stream that follows.
func (p *pair) hostile(list []mirror.Entry, headers ...tar.Header) (mirror.Left, error) {
	p.Helper()
	return p.tree.Apply(p.Context(), list, func([]string) (io.ReadCloser, error) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			p.must(w.WriteHeader(&h))
			_, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size)))
			p.must(err)
		}
		p.must(w.Close())
		return io.NopCloser(&b), nil
	})
}

func TestHostileLists(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 256)
	for _, e := range []mirror.Entry{
		{Path: "../out", Kind: mirror.File}, {Path: "/abs", Kind: mirror.File}, {Path: "a/../../out", Kind: mirror.File},
		{Path: ".", Kind: mirror.Folder}, {Path: "", Kind: mirror.File}, {Path: "a//b", Kind: mirror.File}, {Path: "no/folder", Kind: mirror.File},
		{Path: ".git", Kind: mirror.Folder}, {Path: ".GiT", Kind: mirror.Folder}, {Path: "git~1", Kind: mirror.Folder},
		{Path: ".git ", Kind: mirror.Folder}, {Path: ".git..", Kind: mirror.Folder}, {Path: ".git::$INDEX_ALLOCATION", Kind: mirror.Folder},
		{Path: ".g\u200cit", Kind: mirror.Folder}, {Path: "\ufeff.git", Kind: mirror.Folder}, {Path: `.git\config`, Kind: mirror.File}, {Path: "nul\x00", Kind: mirror.File},
		{Path: long, Kind: mirror.File}, {Path: ".ralph-mirror-part", Kind: mirror.File},
		{Path: "link", Kind: mirror.Link, Target: "/etc"}, {Path: "link", Kind: mirror.Link, Target: "../x"},
		{Path: "link", Kind: mirror.Link, Target: "a/../../x"}, {Path: "link", Kind: mirror.Link, Target: "x/.."},
		{Path: "link", Kind: mirror.Link, Target: ".git"}, {Path: "link", Kind: mirror.Link, Target: "sub/.GIT/config"},
		{Path: "link", Kind: mirror.Link}, {Path: "huge", Kind: mirror.File, Size: 1 << 62},
		{Path: "plain/below", Kind: mirror.File}, {Path: "real/below", Kind: mirror.File},
	} {
		p := newPair(t)
		p.write(p.host, "kept", "kept")
		p.must(os.Symlink("/tmp", filepath.Join(p.host, "real")))
		p.send()
		list := []mirror.Entry{
			{Path: "kept", Kind: mirror.File, Mode: 0o644, Size: 4}, {Path: "real", Kind: mirror.Link, Target: "/tmp"},
			{Path: "plain", Kind: mirror.File, Size: 0}, e,
		}
		left, err := p.hostile(list, tar.Header{Name: "kept", Typeflag: tar.TypeReg, Size: 4}, tar.Header{Name: "plain", Typeflag: tar.TypeReg})
		if err != nil || left.Count != 1 {
			t.Errorf("%+v: left %+v, %v", e, left, err)
		}
		if got := p.content(p.host); len(got) != 3 || got["real"] != "-> /tmp" {
			t.Errorf("%+v: the host has %q", e, got)
		}
	}
}

func TestHostileStreams(t *testing.T) {
	t.Parallel()
	asked := []mirror.Entry{{Path: "dir", Kind: mirror.Folder, Mode: 0o755}, {Path: "dir/f", Kind: mirror.File, Mode: 0o4777, Size: 3}}
	for name, h := range map[string][]tar.Header{
		"unasked":    {{Name: "other", Typeflag: tar.TypeReg, Size: 3}},
		"up":         {{Name: "../f", Typeflag: tar.TypeReg, Size: 3}},
		"absolute":   {{Name: "/tmp/f", Typeflag: tar.TypeReg, Size: 3}},
		"twice":      {{Name: "dir/f", Typeflag: tar.TypeReg, Size: 3}, {Name: "dir/f", Typeflag: tar.TypeReg, Size: 3}},
		"link":       {{Name: "dir/f", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
		"hard link":  {{Name: "dir/f", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"device":     {{Name: "dir/f", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"pipe":       {{Name: "dir/f", Typeflag: tar.TypeFifo}},
		"folder":     {{Name: "dir/f", Typeflag: tar.TypeDir}},
		"other name": {{Name: "dir//f", Typeflag: tar.TypeReg, Size: 3}},
	} {
		p := newPair(t)
		if _, err := p.hostile(asked, h...); err == nil || !strings.Contains(err.Error(), "comes unasked") {
			t.Errorf("%s: error is %v", name, err)
		}
		for path, text := range p.content(p.host) {
			if path != "dir" && (path != "dir/f" || text != "rwx xxx") {
				t.Errorf("%s: the host has %s, %q", name, path, text)
			}
		}
	}
	p := newPair(t)
	p.tree.Limits.File = 5
	left, err := p.hostile(asked, tar.Header{Name: "dir/f", Typeflag: tar.TypeReg, Size: 6})
	if err != nil || left.Count != 1 {
		t.Errorf("a file that has grown: left %+v, %v", left, err)
	}
	broken := errors.New("gone")
	if _, err := p.tree.Apply(t.Context(), asked, func([]string) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("half"), failing{broken})), nil
	}); !errors.Is(err, broken) {
		t.Errorf("a stream that breaks: %v", err)
	}
	p.tree.Limits.Bytes = 10
	if _, err := p.tree.Apply(t.Context(), asked, func([]string) (io.ReadCloser, error) {
		var b bytes.Buffer
		_ = tar.NewWriter(&b).Close()
		return io.NopCloser(io.MultiReader(&b, endless{})), nil
	}); err == nil || !strings.Contains(err.Error(), "they do not end") {
		t.Errorf("a stream without end: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestTooMany(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.tree.Limits = mirror.Limits{Entries: 2, Bytes: 5}
	list := []mirror.Entry{
		{Path: "a", Kind: mirror.File, Size: 4}, {Path: "b", Kind: mirror.File, Size: 2}, {Path: "c", Kind: mirror.Folder}, {Path: "d", Kind: mirror.Folder},
	}
	left, err := p.hostile(list, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 4})
	if err != nil || left.Count != 2 {
		t.Errorf("left %+v, %v", left, err)
	}
	if got := p.content(p.host); len(got) != 2 || got["a"] != "rw- xxxx" || got["c"] != "folder" {
		t.Errorf("the host has %q", got)
	}
	if _, err := mirror.Decode([]byte("d 755 0  a\x00\x00d 755 0  b\x00\x00d 755 0  c\x00\x00end 3\x00"), p.tree.Limits); err == nil {
		t.Error("a list that is too long is read")
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"end 0\x00", "d 755 0  a\x00\x00end 1\x00", "f 644 3 1.2 a b\x00\x00l 0 0  l\x00a\x00end 2\x00", "f 644 -3  a\x00\x00end 1\x00", "x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := mirror.Decode(text, mirror.Limits{})
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := mirror.Encode(&b, list); err != nil {
			t.Fatal(err)
		}
		again, err := mirror.Decode(b.Bytes(), mirror.Limits{})
		if err != nil || !slices.Equal(list, again) {
			t.Fatalf("%+v is read again as %+v, %v", list, again, err)
		}
	})
}

// FuzzApply takes any list and any stream, and finds nothing beside the folder and no git directory in it.
func FuzzApply(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "a/f", Typeflag: tar.TypeReg, Size: 1})
	_, _ = w.Write([]byte("x"))
	_ = w.Close()
	for _, seed := range []string{
		"d 755 0  a\x00\x00f 644 1 m a/f\x00\x00end 2\x00", "l 0 0  a\x00..\x00f 644 1  a/f\x00\x00end 2\x00",
		"f 644 1  ../f\x00\x00end 1\x00", "d 755 0  .GIT\x00\x00end 1\x00",
	} {
		f.Add([]byte(seed), b.Bytes())
	}
	f.Fuzz(func(t *testing.T, text, stream []byte) {
		list, err := mirror.Decode(text, mirror.Limits{Entries: 100})
		if err != nil {
			return
		}
		above := t.TempDir()
		host := filepath.Join(above, "host")
		if err := os.Mkdir(host, 0o755); err != nil {
			t.Fatal(err)
		}
		tree := &mirror.Tree{Root: root(t, host), Links: true, Limits: mirror.Limits{File: 1 << 16, Bytes: 1 << 17}}
		_, _ = tree.Apply(t.Context(), list, func([]string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(stream)), nil })
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
