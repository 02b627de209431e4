package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// folder makes a folder with files.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// packed returns the files of a packed and unpacked folder.
func packed(t *testing.T, r room, dir string) map[string]string {
	t.Helper()
	content, err := r.pack(dir)
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := Unpack(content, to); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(to, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(text)
	}
	return got
}

func TestPack(t *testing.T) {
	t.Parallel()
	secret := folder(t, map[string]string{"key": "secret"})
	dir := folder(t, map[string]string{journal.EventsFile: "{}\n", "agent-1.log": "one\ntwo\n", "empty.log": ""})
	if err := errors.Join(os.Symlink(filepath.Join(secret, "key"), filepath.Join(dir, "link.log")), os.Mkdir(filepath.Join(dir, "sub"), 0o700)); err != nil {
		t.Fatal(err)
	}
	got := packed(t, most(), dir)
	if len(got) != 2 || got[journal.EventsFile] != "{}\n" || got["agent-1.log"] != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	if content, err := Pack(folder(t, nil)); content != nil || err != nil {
		t.Errorf("an empty folder: %d bytes, %v", len(content), err)
	}
	if _, err := Pack(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there is packed")
	}
}

// The end of a long file is kept, from the beginning of a line. Files above the limits are left out.
func TestPackLongFiles(t *testing.T) {
	t.Parallel()
	small := room{file: 4 << 10, all: 16 << 10, files: 4}
	line := strings.Repeat("x", 99) + "\n"
	long := strings.Repeat(line, 2*int(small.file)/len(line)) + "the end\n"
	files := map[string]string{journal.EventsFile: long}
	for i := range 5 {
		files[fmt.Sprintf("a%d.log", i)] = long
	}
	got := packed(t, small, folder(t, files))
	if n := len(got); n != 4 { // each takes about a quarter of the limit
		t.Errorf("%d files", n)
	}
	if e := got[journal.EventsFile]; !strings.HasPrefix(e, line) || !strings.HasSuffix(e, "the end\n") || len(e) > int(small.file) {
		t.Errorf("events: %d bytes, begin with %.20q", len(e), e)
	}
	if l := got["a0.log"]; !strings.HasPrefix(l, "[the first ") || !strings.HasSuffix(l, "the end\n") {
		t.Errorf("a log: begins with %.80q", l)
	}
}

// A forged copy writes nothing outside of the folder and does not fill the memory.
func TestUnpackHostile(t *testing.T) {
	t.Parallel()
	for _, h := range []tar.Header{
		{Name: "../out", Typeflag: tar.TypeReg, Size: 1}, {Name: "/tmp/out", Typeflag: tar.TypeReg, Size: 1}, {Name: "a/b", Typeflag: tar.TypeReg, Size: 1},
		{Name: "..", Typeflag: tar.TypeReg, Size: 1}, {Name: "", Typeflag: tar.TypeReg, Size: 1}, {Name: `a\b`, Typeflag: tar.TypeReg, Size: 1},
		{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, {Name: "dir", Typeflag: tar.TypeDir}, {Name: "fifo", Typeflag: tar.TypeFifo},
		{Name: "big", Typeflag: tar.TypeReg, Size: 1 << 40},
	} {
		var out bytes.Buffer
		zipped := gzip.NewWriter(&out)
		to := tar.NewWriter(zipped)
		if err := to.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size == 1 {
			_, _ = to.Write([]byte("x"))
		}
		_ = errors.Join(to.Flush(), zipped.Close())
		dir := t.TempDir()
		if err := Unpack(out.Bytes(), dir); err == nil {
			t.Errorf("%q is unpacked", h.Name)
		}
		if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
			t.Errorf("%q has left %v, %v", h.Name, entries, err)
		}
	}
}

// Only a limited number of files is packed, and a copy with more is refused: it may take only a megabyte, but each would
// become a file here.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	few := room{file: 1 << 10, all: 1 << 10, files: 3}
	if got := packed(t, few, folder(t, map[string]string{journal.EventsFile: "{}\n", "a": "a", "b": "b", "c": "c", "d": "d"})); len(got) != 3 || got[journal.EventsFile] != "{}\n" {
		t.Errorf("%q", got)
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	to := tar.NewWriter(zipped)
	for i := range 2 * most().files {
		if err := to.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(to.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Unpack(out.Bytes(), dir); err == nil {
		t.Error("a copy of very many files is unpacked")
	}
	if entries, err := os.ReadDir(dir); len(entries) > most().files || err != nil {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

func FuzzUnpack(f *testing.F) {
	content, err := Pack(folder(f, map[string]string{journal.EventsFile: "{}\n"}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "dir")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		_ = Unpack(content, dir)
		if entries, err := os.ReadDir(outer); len(entries) != 1 || err != nil {
			t.Errorf("beside the folder: %v, %v", entries, err)
		}
	})
}

func TestCopies(t *testing.T) {
	t.Parallel()
	content, err := Pack(folder(t, map[string]string{journal.EventsFile: "{}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	c := Copies{Dir: filepath.Join(t.TempDir(), "copies"), Most: 2}
	fetched := 0
	get := func(run string) string {
		t.Helper()
		dir, err := c.Get(run, func() ([]byte, error) { fetched++; return content, nil })
		if text, read := os.ReadFile(filepath.Join(dir, journal.EventsFile)); err != nil || read != nil || string(text) != "{}\n" {
			t.Fatalf("%s: %q, %v, %v", run, text, err, read)
		}
		return dir
	}
	for i, run := range []string{"a", "a", "b", "c", "b"} {
		dir := get(run)
		at := time.Now().Add(time.Duration(i-10) * time.Minute) // at different times
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != "b" || fetched != 3 {
		t.Errorf("kept %v, fetched %d, %v", entries, fetched, err)
	}
	if dir, err := c.Get("none", func() ([]byte, error) { return nil, nil }); dir != "" || err != nil {
		t.Errorf("%q, %v", dir, err)
	}
	away := errors.New("away")
	if _, err := c.Get("none", func() ([]byte, error) { return nil, away }); !errors.Is(err, away) {
		t.Error(err)
	}
	if _, err := c.Get("none", func() ([]byte, error) { return []byte("damaged"), nil }); err == nil {
		t.Error("a damaged copy is unpacked")
	}
	if entries, err := os.ReadDir(c.Dir); err != nil || len(entries) != 2 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
