package importer

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's object names
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/worktree/git"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pack builds packs as a sandbox could send them.
type pack struct {
	body  bytes.Buffer
	count int
}

// add adds an object with a header of that size; its content may differ.
func (p *pack) add(kind int, size int, content []byte) string {
	p.count++
	b := byte(kind<<4) | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.body.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	p.body.WriteByte(b)
	w, _ := zlib.NewWriterLevel(&p.body, zlib.BestSpeed)
	_, _ = w.Write(content)
	_ = w.Close()
	name := map[int]string{typeCommit: "commit", typeTree: "tree", typeBlob: "blob"}[kind]
	sum := sha1.Sum(append([]byte(fmt.Sprintf("%s %d\x00", name, len(content))), content...)) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}

func (p *pack) object(kind int, content string) string {
	return p.add(kind, len(content), []byte(content))
}

// tree adds a folder with the same entry under several names.
func (p *pack) tree(mode, id string, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		raw, err := hex.DecodeString(id)
		if err != nil {
			panic(err)
		}
		b.WriteString(mode + " " + name + "\x00" + string(raw))
	}
	return p.object(typeTree, b.String())
}

// commit adds a commit of the tree.
func (p *pack) commit(tree string, at time.Time, parents ...string) string {
	text := "tree " + tree + "\n"
	for _, parent := range parents {
		text += "parent " + parent + "\n"
	}
	who := fmt.Sprintf("A <a@b> %d +0000\n", at.Unix())
	return p.object(typeCommit, text+"author "+who+"committer "+who+"\nwork\n")
}

func (p *pack) bytes() []byte {
	out := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(p.count)) //nolint:gosec // small
	out = append(out, p.body.Bytes()...)
	sum := sha1.Sum(out) //nolint:gosec // see above
	return append(out, sum[:]...)
}

// given makes a repository with one commit, and returns its objects and the commit.
func given(t *testing.T) (objects, commit string) {
	t.Helper()
	dir := t.TempDir()
	script := "git init -q . && mkdir d && echo a > d/a && echo b > d/b && git add . && git -c user.name=A -c user.email=a@b commit -qm base && git rev-parse HEAD"
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, ".git", "objects"), strings.TrimSpace(string(out))
}

// oldTree adds a folder to the given history whose file has a mode that git has not written for many years.
func oldTree(t *testing.T, objects string) (content string) {
	t.Helper()
	blob := sha1.Sum([]byte("blob 2\x00a\n")) //nolint:gosec // see above
	content = "100664 a\x00" + string(blob[:])
	cmd := exec.Command("git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally")
	cmd.Env, cmd.Stdin = append(os.Environ(), "GIT_DIR="+filepath.Dir(objects)), strings.NewReader(content)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return content
}

// TestRead lists what a sandbox may send.
func TestRead(t *testing.T) {
	t.Parallel()
	objects, base := given(t)
	now := time.Now()
	out, err := git.New(t.TempDir()).With("GIT_DIR="+filepath.Dir(objects)).Output(t.Context(), "rev-parse", base+"^{tree}")
	if err != nil {
		t.Fatal(err)
	}
	baseTree, old := out, oldTree(t, objects)
	names := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("n%04d", i))
		}
		return all
	}
	good := func(p *pack) string {
		return p.commit(p.tree("100644", p.object(typeBlob, "hello\n"), "file"), now, base)
	}
	tests := map[string]struct {
		make func(p *pack) (tip string)
		edit func(sent string) string
		want string // part of the error; empty: accepted
	}{
		"a commit": {make: good},
		"a commit that uses what is given": {make: func(p *pack) string {
			return p.commit(p.tree("40000", baseTree, "copy", "copy2"), now, base)
		}},
		"nothing": {make: func(*pack) string { return base }, edit: func(string) string { return "ralph 1\ntip " + base + "\nnone\n" }},
		"folders that make 10^10 paths": {want: "paths", make: func(p *pack) string {
			tree := p.tree("100644", p.object(typeBlob, "x"), names(10)...)
			for range 10 {
				tree = p.tree("40000", tree, names(10)...)
			}
			return p.commit(tree, now, base)
		}},
		"given folders many times": {want: "paths", make: func(p *pack) string {
			tree := p.tree("40000", baseTree, names(1000)...)
			for range 3 {
				tree = p.tree("40000", tree, names(1000)...)
			}
			return p.commit(tree, now, base)
		}},
		"a name that no file system takes": {want: "a name has 256 bytes", make: func(p *pack) string {
			return p.commit(p.tree("100644", p.object(typeBlob, "x"), strings.Repeat("n", 256)), now, base)
		}},
		"a path that no file system takes": {want: "a path has 4097 bytes", make: func(p *pack) string {
			tree := p.tree("100644", p.object(typeBlob, "x"), strings.Repeat("n", 255))
			for range 15 {
				tree = p.tree("40000", tree, strings.Repeat("d", 255))
			}
			return p.commit(p.tree("40000", tree, "0"), now, base)
		}},
		"long paths of shared folders": {want: "paths of more than 536870912 bytes", make: func(p *pack) string {
			tree := p.tree("100644", p.object(typeBlob, "x"), names(900)...)
			for range 10 {
				tree = p.tree("40000", tree, strings.Repeat("d", 250))
			}
			return p.commit(p.tree("40000", tree, names(1000)...), now, base)
		}},
		"1,000 folders inside each other": {want: "inside each other", make: func(p *pack) string {
			tree := p.tree("100644", p.object(typeBlob, "x"), "f")
			for range 1000 {
				tree = p.tree("40000", tree, "d")
			}
			return p.commit(tree, now, base)
		}},
		"a file above the limit": {want: "too big", make: func(p *pack) string {
			return p.commit(p.tree("100644", p.object(typeBlob, strings.Repeat("x", 2<<20)), "f"), now, base)
		}},
		"files above the limit together": {want: "too big", make: func(p *pack) string {
			for i := range 9 {
				p.object(typeBlob, fmt.Sprint(i)+strings.Repeat("x", 1<<19))
			}
			return good(p)
		}},
		"a size that is a lie": {want: "longer than its header says", make: func(p *pack) string {
			p.add(typeBlob, 10, make([]byte, 1<<20))
			return good(p)
		}},
		"a size beyond all numbers": {want: "too big", make: func(p *pack) string {
			p.count++
			p.body.WriteString("\xbf" + strings.Repeat("\xff", 12) + "\x7f")
			return good(p)
		}},
		"too many objects": {want: "too big", make: func(p *pack) string {
			for i := range 200 {
				p.object(typeBlob, fmt.Sprint(i))
			}
			return good(p)
		}},
		"a delta": {want: "type 7", make: func(p *pack) string {
			p.add(7, 3, []byte("abc"))
			return good(p)
		}},
		"a tag": {want: "type 4", make: func(p *pack) string {
			p.add(4, 3, []byte("abc"))
			return good(p)
		}},
		"an old commit": {want: "older than the run", make: func(p *pack) string {
			return p.commit(baseTree, now.AddDate(-1, 0, 0), base)
		}},
		"a parent that was not given": {want: strings.Repeat("1", 40), make: func(p *pack) string {
			return p.commit(baseTree, now, strings.Repeat("1", 40))
		}},
		"a tip that is not there": {want: "not in the pack", make: func(p *pack) string { good(p); return strings.Repeat("1", 40) }},
		"a tree as the tip": {want: "not in the pack", make: func(p *pack) string {
			good(p)
			return p.tree("100644", p.object(typeBlob, "y"), "file")
		}},
		"files' tree that is a commit": {want: "not in the pack", make: good, edit: func(s string) string {
			return strings.Replace(s, "pack\n", "tree "+base+"\npack\n", 1)
		}},
		"an empty folder": {want: "the folder f is empty", make: func(p *pack) string {
			return p.commit(p.tree("40000", p.object(typeTree, ""), "f"), now, base)
		}},
		"a folder of old history as it was then": {make: func(p *pack) string {
			return p.commit(p.tree("40000", p.object(typeTree, old), "d"), now, base)
		}},
		"nothing but an empty root": {make: func(p *pack) string { return p.commit(p.object(typeTree, ""), now, base) }},
		"a folder with bits of permission": {want: "f has mode 40755", make: func(p *pack) string {
			return p.commit(p.tree("40755", baseTree, "f"), now, base)
		}},
		"a link to another repository with such bits": {want: "f has mode 160755", make: func(p *pack) string {
			return p.commit(p.tree("160755", base, "f"), now, base)
		}},
		"a folder with a zero before its mode": {want: "f has mode 040000", make: func(p *pack) string {
			return p.commit(p.tree("040000", baseTree, "f"), now, base)
		}},
		"a file that its group may write": {want: "f has mode 100664", make: func(p *pack) string {
			return p.commit(p.tree("100664", p.object(typeBlob, "x"), "f"), now, base)
		}},
		"a .git folder": {want: "hasDotgit", make: func(p *pack) string {
			return p.commit(p.tree("40000", baseTree, ".GIT"), now, base)
		}},
		"half a pack":              {want: "unexpected EOF", make: good, edit: func(s string) string { return s[:len(s)-30] }},
		"more than a pack":         {want: "there is more data after", make: good, edit: func(s string) string { return s + "x" }},
		"a wrong checksum":         {want: "index-pack", make: good, edit: func(s string) string { return s[:len(s)-1] + string([]byte{s[len(s)-1] ^ 1}) }},
		"no report":                {want: "begins with", make: good, edit: func(s string) string { return s[strings.Index(s, "PACK"):] }},
		"an endless line":          {want: "too long", make: good, edit: func(string) string { return "ralph 1\nnote " + strings.Repeat("x", 1<<20) }},
		"endless lines":            {want: "too many lines", make: good, edit: func(string) string { return "ralph 1\n" + strings.Repeat("note x\n", 1000) }},
		"an unknown line":          {want: "unknown line", make: good, edit: func(s string) string { return strings.Replace(s, "pack\n", "exec x\npack\n", 1) }},
		"a name that is an option": {want: "not the name of an object", make: good, edit: func(string) string { return "ralph 1\ntip --all\nnone\n" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pack{}
			tip := test.make(p)
			sent := "ralph 1\ntip " + tip + "\npack\n" + string(p.bytes())
			if test.edit != nil {
				sent = test.edit(sent)
			}
			o := Options{
				Dir: filepath.Join(t.TempDir(), "quarantine"), Given: []string{objects}, Known: []string{base},
				Since: now, Caps: Caps{Objects: 40000, Size: 4 << 20, Blob: 1 << 20, Paths: 1_000_000},
			}
			if name == "too many objects" {
				o.Caps.Objects = 100
			}
			q, err := Read(t.Context(), strings.NewReader(sent), o)
			if test.want == "" {
				if err != nil || q.Tip != tip {
					t.Fatalf("%+v, %v", q, err)
				}
				var limit strings.Builder
				err := q.git.Pipe(t.Context(), strings.NewReader("go\n"), &limit, "-c", `alias.limit=!read go; grep "Max data size" "/proc/$PPID/limits"`, "limit")
				if want := strconv.Itoa(git.AgentMemory); q.Objects > 0 && runtime.GOOS == "linux" && (err != nil || !strings.Contains(limit.String(), want)) {
					t.Errorf("git has %q, %v, want %s", limit.String(), err, want)
				}
				if err := q.Close(); err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, test.want)
			}
			if _, err := os.Lstat(o.Dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the quarantine is left: %v", err)
			}
		})
	}
}

// FuzzScan reads input that may not be a pack.
func FuzzScan(f *testing.F) {
	p := &pack{}
	p.commit(p.tree("40000", p.tree("100644", p.object(typeBlob, "x"), "f"), "d"), time.Now())
	f.Add(p.bytes())
	f.Add([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, content []byte) {
		caps := Caps{Objects: 100, Size: 1 << 20, Blob: 1 << 20}.WithDefaults()
		s := &scanner{in: bufio.NewReader(bytes.NewReader(content)), caps: caps}
		if c, err := s.scan(); err == nil && (c.objects > caps.Objects || s.size > caps.Size) {
			t.Errorf("accepted %d objects of %d bytes", c.objects, s.size)
		}
	})
}

// FuzzReport reads input that a script may not have printed.
func FuzzReport(f *testing.F) {
	f.Add([]byte("ralph 1\ntip " + strings.Repeat("a", 40) + "\nnote x\nnone\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		rep, err := readReport(bufio.NewReader(bytes.NewReader(content)))
		if err == nil && !git.IsObject(rep.Tip) {
			t.Errorf("accepted %+v", rep)
		}
	})
}
