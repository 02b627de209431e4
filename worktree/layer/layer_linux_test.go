package layer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/worktree/git"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

// fixture is a repository, and the layers of a state folder.
type fixture struct {
	*testing.T
	dir, state string
	used       map[string]bool // names of layers
	layers     Stores
	trees      int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	at, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, dir: filepath.Join(at, "project"), state: filepath.Join(at, "state"), used: map[string]bool{}}
	f.layers = Stores{
		Dir: filepath.Join(f.state, "layers"), Temp: filepath.Join(f.state, "tmp"), Lock: filepath.Join(f.state, "lock"), MaxBytes: 1 << 30, MinFiles: -1,
		Used: func() (map[string]bool, error) { return f.used, nil }, Log: slog.New(slog.DiscardHandler),
	}
	if err := os.MkdirAll(f.layers.Temp, 0o700); err != nil {
		t.Fatal(err)
	}
	f.sh("", "git init -q -b main "+f.dir)
	return f
}

func (f *fixture) sh(dir, line string, env ...string) string {
	f.Helper()
	cmd := exec.CommandContext(f.Context(), "sh", "-ec", line)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// commit makes a commit of a script's changes.
func (f *fixture) commit(script string) string {
	f.Helper()
	return f.sh(f.dir, script+"\ngit add -A; git commit -q --allow-empty -m x; git rev-parse HEAD")
}

// tree is a tree over a layer.
type tree struct{ layer, dir, index, commit string }

// checkout returns the checkout of a commit.
func (f *fixture) checkout(trusted, commit string) (Checkout, *tree) {
	f.Helper()
	f.trees++
	t := &tree{dir: filepath.Join(f.state, fmt.Sprint("tree", f.trees)), commit: commit}
	if err := os.Mkdir(t.dir, 0o700); err != nil {
		f.Fatal(err)
	}
	t.index = t.dir + ".index"
	common := filepath.Join(f.dir, ".git")
	g := git.New(f.state).Pin(common, common, t.dir)
	config, err := g.Config(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return Checkout{
		Git: g, Config: config, Trusted: trusted, Commit: commit, Dir: t.dir, Index: t.index,
		CheckLayers: func(context.Context) error { return nil },
		RecordUse:   func(name string) error { t.layer, f.used[name] = name, true; return nil },
	}, t
}

// lay makes a tree; nil if it is not over a layer.
func (f *fixture) lay(trusted, commit string) *tree {
	f.Helper()
	c, t := f.checkout(trusted, commit)
	ok, err := f.layers.MakeUpper(f.Context(), c)
	if err != nil {
		f.Fatal(err)
	}
	if ok != (t.layer != "") {
		f.Fatalf("layer %q, and it is used: %v", t.layer, ok)
	}
	if !ok {
		if left, err := filepath.Glob(t.dir + "/*"); err != nil || len(left) > 0 {
			f.Errorf("left: %q, %v", left, err)
		}
		return nil
	}
	return t
}

// look lists every file and folder with type, mode, link target and content.
const look = `find . -mindepth 1 -printf '%P %y %m %l\n' | LC_ALL=C sort; find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2`

// merged runs a script in the merged view.
func (f *fixture) merged(t *tree, script string) string {
	f.Helper()
	view, work := t.dir+".view", t.dir+".work"
	for _, dir := range []string{view, work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			f.Fatal(err)
		}
	}
	f.Cleanup(func() { _ = os.Chmod(filepath.Join(work, "work"), 0o700) })
	mount := fmt.Sprintf("mount -t overlay overlay -o userxattr,lowerdir=%s,upperdir=%s,workdir=%s %s; cd %[4]s\n",
		f.layers.Tree(t.layer), t.dir, work, view)
	return f.sh("", "exec unshare -Urm sh -ec '"+mount+script+"'", "GIT_DIR="+filepath.Join(f.dir, ".git"),
		"GIT_WORK_TREE="+view, "GIT_INDEX_FILE="+t.index, "GIT_OPTIONAL_LOCKS=0")
}

// check compares the merged view with a plain checkout.
func (f *fixture) check(t *tree) {
	f.Helper()
	if t == nil {
		return // an ordinary checkout
	}
	plain := t.dir + ".plain"
	want := f.sh(f.dir, fmt.Sprintf("git worktree add -q --detach %s %s; cd %[1]s; rm .git; %[3]s", plain, t.commit, look))
	if got := f.merged(t, strings.ReplaceAll(look, "'", `'\''`)); got != want {
		f.Errorf("the merged view is\n%s\nbut a checkout is\n%s", got, want)
	}
	if got := f.merged(t, "git diff-index --cached "+t.commit+"; git -c core.checkStat=minimal diff-files; git ls-files -o"); got != "" {
		f.Errorf("changes in the merged view: %s", got)
	}
}

const everything = `mkdir -p a/b/c d deep/er e; for i in 1 2 3; do echo $i >a/$i; echo $i >a/b/$i; echo $i >a/b/c/$i; echo $i >d/$i; done
	echo x >deep/er/only; echo run >run; chmod +x run; ln -s a/1 link; ln -s a dirlink; echo e >e/f; printf "%s" z >"with
newline"; echo y >"a/ name"; echo file >file`

// empty returns a script that replaces a file or folder at the top by an empty folder, which git itself never makes.
func empty(name string) string {
	return "git rm -qr " + name + `; tree=$(git hash-object -t tree -w /dev/null)
		git commit-tree -p HEAD -m x $( (git ls-tree $(git write-tree); printf '040000 tree %s\t` + name + `\n' $tree) | git mktree) >../made; git reset -q --hard $(cat ../made); cat ../made; exit`
}

func TestKindsOfChange(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"nothing":                     ":",
		"adds":                        "echo n >new; mkdir -p n/m; echo n >n/m/o; echo n >a/b/new",
		"changes":                     "echo changed >a/b/c/1; echo changed >file",
		"removes a file":              "rm a/b/c/1 file",
		"removes folders":             "rm -r a/b deep",
		"removes all":                 "rm -r ./*",
		"empties a folder of files":   "rm a/1 a/2 a/3",
		"a folder becomes a file":     "rm -r a/b; echo now >a/b",
		"a folder becomes a link":     "rm -r a/b; ln -s ../d a/b",
		"a link becomes a folder":     "rm dirlink; mkdir dirlink; echo x >dirlink/1",
		"a file becomes a folder":     "rm file; mkdir -p file/in/side; echo x >file/in/side/f",
		"a file becomes a link":       "rm file; ln -s d file",
		"a link becomes a file":       "rm link dirlink; echo l >link; echo l >dirlink",
		"modes":                       "chmod -x run; chmod +x a/1",
		"names":                       `rm "with` + "\n" + `newline"; mv "a/ name" "a/ other"; mkdir "n` + "\n" + `l"; echo x >"n` + "\n" + `l/\"q\" *?"`,
		"moves a folder":              "mv a/b moved",
		"replaces a folder's content": "rm d/*; echo x >d/other",
		"swaps":                       "mv a/b t; mv file a/b; mv t file",
		"a repository inside":         "rm -r d; git init -q d; git -C d commit -q --allow-empty -m x",
		"a repository further inside": "rm -r a/b; git init -q a/b; git -C a/b commit -q --allow-empty -m x",
		"a submodule":                 "git rm -qr a/b; git init -q ../sub; git -C ../sub commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add ../sub a/b",
		"a submodule for a file":      "rm file; git init -q file; git -C file commit -q --allow-empty -m x; git add -A 2>../warning",
		"an empty folder for a file":  empty("file"),
		"a folder of empty ones for a file": `git rm -q file; tree=$(git hash-object -t tree -w /dev/null)
			deep=$(printf '040000 tree %s\tin\n' $(printf '040000 tree %s\tside\n' $tree | git mktree) | git mktree)
			git commit-tree -p HEAD -m x $( (git ls-tree $(git write-tree); printf '040000 tree %s\tfile\n' $deep) | git mktree) >../made
			git reset -q --hard $(cat ../made); cat ../made; exit`,
		"an empty folder for a folder": empty("d"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			base := f.commit(everything)
			commit := f.commit(script)
			first := f.lay(base, base)
			f.check(first)
			over := f.lay(base, commit) // an agent's commit, or a moved base
			if over == nil != strings.Contains(name, "submodule") {
				t.Fatalf("over a layer: %v", over != nil)
			}
			f.check(over)
			f.layers.Dir += "-back"
			if back := f.lay(commit, commit); back.layer != "" {
				f.check(f.lay(base, base)) // over the newer base
			}
			if upper := f.sh(first.dir, "ls -A"); upper != "" {
				t.Errorf("the first tree has %s", upper)
			}
		})
	}
}

// The index has times and inodes of the merged view, so that git reads no file: it does not notice changes that keep size
// and time.
func TestIndexFits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base := f.commit(everything)
	f.lay(base, base)
	x := f.lay(base, f.commit("echo more >file; echo new >new; rm -r a/b"))
	f.sh("", "touch -d '1 hour' "+x.index) // otherwise git reads files that are as new as the index
	edit := "touch -r %[1]s ref; echo %[2]s >%[1]s; touch -r ref %[1]s; rm ref\n"
	f.sh(x.dir, fmt.Sprintf(edit, "file", "MORE")+fmt.Sprintf(edit, "new", "NEW"))
	f.sh(f.layers.Tree(x.layer), fmt.Sprintf(edit, "a/1", "I"))
	const look = "cat a/1 file new; git -c core.trustctime=false diff-files --name-only"
	if got := f.merged(x, look); got != "I\nMORE\nNEW" {
		t.Errorf("git has read files:\n%s", got)
	}
	f.sh("", "touch -d '1 hour ago' "+x.index)
	if got := f.merged(x, look); got != "I\nMORE\nNEW\na/1\nfile\nnew" {
		t.Errorf("git has read nothing with an older index:\n%s", got)
	}
}

func TestChoice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	one := f.commit(everything)
	two := f.commit("echo two >file")
	many := f.commit("mkdir many; for i in $(seq 2100); do echo $i >many/$i; done")
	attributes := f.commit("echo '*.txt text' >.gitattributes")
	f.layers.MinFiles = 21
	if f.lay(one, one) != nil {
		t.Error("a layer for a small repository")
	}
	f.layers.MinFiles = 20
	if f.lay("", one) != nil {
		t.Error("a layer of what is not the base")
	}
	if f.lay(one, many) != nil || len(f.layers.list()) > 0 {
		t.Error("a layer for a tree that differs in too many files")
	}
	c, x := f.checkout(one, one)
	c.CheckLayers = func(context.Context) error { return errors.New("no") }
	if ok, err := f.layers.MakeUpper(t.Context(), c); ok || err != nil || x.layer != "" {
		t.Errorf("a layer that no sandbox can show: %v", err)
	}
	first := f.lay(one, one)
	f.layers.MinFiles = 1000
	if next := f.lay(two, two); next.layer != first.layer {
		t.Error("a new layer for a base that has moved a little")
	}
	if far := f.lay(many, many); far.layer == first.layer || !strings.HasPrefix(far.layer, many) {
		t.Errorf("layer %s for a base that has moved far", far.layer)
	}
	if f.lay(many, attributes) != nil {
		t.Error("a layer for a commit that changes attributes")
	}
	if a := f.lay(attributes, attributes); !strings.HasPrefix(a.layer, attributes) {
		t.Errorf("layer %s where attributes have changed", a.layer)
	}
	c, x = f.checkout(one, one)
	c.ContentKey = "other"
	if ok, err := f.layers.MakeUpper(t.Context(), c); !ok || err != nil || x.layer == first.layer || !IsName(x.layer) {
		t.Errorf("layer %s for another configuration: %v", x.layer, err)
	}
	f.sh(f.dir, "git update-ref -d refs/heads/main; git reflog expire --expire=all --all; rm -f .git/ORIG_HEAD; git gc -q --prune=now")
	other := f.sh(f.dir, "git checkout -q --orphan other; git commit -qm x; git rev-parse HEAD")
	if got := f.lay(other, other); !strings.HasPrefix(got.layer, other) {
		t.Errorf("layer %s where the commits of others are gone", got.layer)
	}
}

// Filters run on the base's files, where the tree has no others.
func TestFilters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sh(f.dir, `git config filter.up.smudge "tr a-z A-Z"; git config filter.up.clean "tr A-Z a-z"`)
	base := f.commit("echo '*.up filter=up' >.gitattributes; echo hello >a.up; echo plain >b")
	plain := f.commit("echo more >b")
	agent := f.commit("echo agents >a.up")
	first := f.lay(base, base)
	read := func(x *tree) string { return f.merged(x, "cat a.up b") }
	if got := read(first); got != "HELLO\nplain" {
		t.Errorf("the base is %q", got)
	}
	x := f.lay(base, agent)
	if got := read(x); x.layer != first.layer || got != "agents\nmore" {
		t.Errorf("the agent's commit is %q", got)
	}
	if x := f.lay(plain, plain); x.layer != first.layer || read(x) != "HELLO\nmore" {
		t.Error("the moved base has its own layer, or other files")
	}
	if x := f.lay(agent, agent); x.layer == first.layer || read(x) != "AGENTS\nmore" {
		t.Errorf("the moved base is %q", read(x))
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var names []string
	for i := range 4 {
		commit := f.commit(fmt.Sprintf("rm -f big*; echo '* text' >.gitattributes; echo %d >>.gitattributes; head -c 740000 /dev/urandom | base64 >big", i))
		names = append(names, f.lay(commit, commit).layer)
		f.sh("", fmt.Sprintf("touch -d '%d hours ago' %s", 10-i, filepath.Join(f.layers.Dir, names[i])))
	}
	left := func() (have []string) {
		for _, l := range f.layers.list() {
			have = append(have, fmt.Sprint(slices.Index(names, l.Name())))
		}
		return have
	}
	prune := func(most int64, used ...int) string {
		clear(f.used)
		for _, i := range used {
			f.used[names[i]] = true
		}
		if err := f.layers.Prune(t.Context(), most); err != nil {
			t.Fatal(err)
		}
		return strings.Join(left(), " ")
	}
	if got := prune(4_500_000); got != "3 2 1 0" {
		t.Errorf("all fit, and left are %s", got)
	}
	if got := prune(2_500_000, 0); got != "3 2 0" {
		t.Errorf("left are %s", got)
	}
	f.layers.Used = func() (map[string]bool, error) { return nil, errors.New("a record cannot be read") }
	if got := prune(0); got != "3 2 0" {
		t.Errorf("nobody knows what is used, and left are %s", got)
	}
	f.layers.Used = func() (map[string]bool, error) { return f.used, nil }
	if got := prune(0, 2); got != "2" {
		t.Errorf("left are %s", got)
	}
	if left, err := os.ReadDir(f.layers.Temp); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Trees that are made at the same time share one layer.
func TestTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base := f.commit(everything)
	done := make(chan error, 8)
	for range cap(done) {
		c, _ := f.checkout(base, base)
		c.RecordUse = func(string) error { return nil }
		go func() { _, err := f.layers.MakeUpper(t.Context(), c); done <- err }()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if all := f.layers.list(); len(all) != 1 {
		t.Errorf("layers %v", all)
	}
}

// Even if layers are pruned while trees are made, the layer of a tree stays as long as the tree.
func TestPruneWhileTreesAreMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bases := []string{f.commit(everything + "; echo '* text' >.gitattributes"), f.commit("echo '*.x text' >.gitattributes")}
	var mu sync.Mutex
	trees := map[string]int{} // number of trees by layer; guarded by mu
	f.layers.Used = func() (map[string]bool, error) {
		mu.Lock()
		defer mu.Unlock()
		used := map[string]bool{}
		for name, n := range trees {
			used[name] = n > 0
		}
		return used, nil
	}
	var all sync.WaitGroup
	for i := range 20 {
		c, _ := f.checkout(bases[i%2], bases[i%2])
		all.Go(func() {
			name := ""
			c.RecordUse = func(layer string) error {
				mu.Lock()
				defer mu.Unlock()
				name = layer
				trees[name]++
				return nil
			}
			if ok, err := f.layers.MakeUpper(t.Context(), c); !ok || err != nil {
				t.Errorf("%v, %v", ok, err)
				return
			}
			if err := f.layers.Prune(t.Context(), 0); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(f.layers.Tree(name), "file")); err != nil {
				t.Error(err)
			}
			mu.Lock()
			trees[name]--
			mu.Unlock()
			if err := f.layers.Prune(t.Context(), 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if left := f.layers.list(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
