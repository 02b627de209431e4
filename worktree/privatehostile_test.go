package worktree

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/importer"
)

// TestHostilePrivateRepository lets an agent attack through its private repository. No attack runs a program on the host,
// and earlier commits and changes are imported nevertheless if they still exist.
func TestHostilePrivateRepository(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do string // $M is the marker, $E a folder with hostile configuration and hooks
		// lost says that the commit cannot be read. Then the import says so, the worktree stays, and the changes are saved.
		lost bool
	}{
		"E1 .git of the worktree points to planted configuration": {do: `bare ignored/evil; cp -r "$E"/* ignored/evil; echo gitdir: ignored/evil > .git`},
		"E2 planted filter and attributes":                        {do: `cp "$E/config" "$GIT_DIR/config"; echo '* filter=e diff=e merge=e' > .gitattributes`},
		"E3 a worktree's .git folder":                             {do: `rm -rf .git; bare .git; cp -r "$E"/* .git`},
		"E4 insteadOf":                                            {do: `git config url.ext::sh.insteadOf /; git config protocol.ext.allow always`},
		"E5 textconv and external diff":                           {do: `cp "$E/config" "$GIT_DIR/config"; echo '* diff=e' > "$GIT_DIR/info/attributes"`},
		"E6 hooks":                                                {do: `cp "$E"/hooks/* "$GIT_DIR/hooks"; chmod +x "$GIT_DIR"/hooks/*`},
		"E8 packObjectsHook":                                      {do: `git config uploadpack.packObjectsHook "touch $M"`},
		"include of a planted file":                               {do: `git config include.path "$E/config"`},
		"configuration of a worktree":                             {do: `git config extensions.worktreeConfig true; cp "$E/config" "$GIT_DIR/config.worktree"`},
		"alternates to elsewhere":                                 {do: `echo /proc/self/root/nowhere >> "$GIT_DIR/objects/info/alternates"`},
		"no alternates":                                           {do: `rm "$GIT_DIR/objects/info/alternates"`},
		"alternates are a pipe":                                   {do: `rm "$GIT_DIR/objects/info/alternates"; mkfifo "$GIT_DIR/objects/info/alternates"`},
		"grafts and replacements":                                 {do: `git replace --graft HEAD; git rev-parse HEAD > "$GIT_DIR/info/grafts"`},
		"a commit graph that lies":                                {do: `git commit-graph write --reachable; head -c 200 /dev/urandom > "$GIT_DIR/objects/info/commit-graph"`},
		"a broken index":                                          {do: `echo garbage > "$GIT_DIR/index"`},
		"links for refs":                                          {do: `h=$(git rev-parse HEAD); rm -rf "$GIT_DIR/refs"; ln -s / "$GIT_DIR/refs"; echo $h > "$GIT_DIR/HEAD"`},
		"a link for HEAD":                                         {do: `rm "$GIT_DIR/HEAD"; ln -s /etc/passwd "$GIT_DIR/HEAD"`},
		"a pipe for HEAD":                                         {do: `rm "$GIT_DIR/HEAD"; mkfifo "$GIT_DIR/HEAD"`},
		"a folder for HEAD":                                       {do: `rm "$GIT_DIR/HEAD"; mkdir "$GIT_DIR/HEAD"`},
		"no HEAD":                                                 {do: `rm "$GIT_DIR/HEAD"`},
		"no refs":                                                 {do: `rm -rf "$GIT_DIR/refs" "$GIT_DIR/packed-refs"`},
		"refs that lead to each other":                            {do: `echo 'ref: refs/heads/b' > "$GIT_DIR/refs/heads/a"; echo 'ref: refs/heads/a' > "$GIT_DIR/refs/heads/b"; echo 'ref: refs/heads/a' > "$GIT_DIR/HEAD"`},
		"a ref that leads out":                                    {do: `echo 'ref: refs/../../../../etc/passwd' > "$GIT_DIR/HEAD"`},
		"pipes among the objects":                                 {do: `for d in "$GIT_DIR"/objects/??; do mkfifo $d/0000000000000000000000000000000000000p; done; mkfifo "$GIT_DIR/objects/pack/pack-a.pack"`},
		"a folder and a link as packs":                            {do: `mkdir "$GIT_DIR/objects/pack/pack-a.pack"; ln -s /dev/zero "$GIT_DIR/objects/pack/pack-b.pack"`},
		"a broken pack":                                           {do: `echo PACKgarbage > "$GIT_DIR/objects/pack/pack-a.pack"`},
		"a pack index that lies":                                  {do: `git repack -qd; for i in "$GIT_DIR"/objects/pack/*.idx; do chmod +w $i; head -c 1000 /dev/urandom > $i; done`},
		"pipes where git reads":                                   {do: `rm -f .gitattributes .gitignore; mkdir -p d/e; mkfifo .gitattributes .gitignore .gitmodules d/.gitignore d/e/.GitAttributes`},
		"nested repository":                                       {do: `mkdir nested; bare nested/.git; cp -r "$E"/* nested/.git; echo x > nested/file`},
		"the objects are gone":                                    {do: `rm -rf "$GIT_DIR"/objects/??`, lost: true},
		"objects are links to others":                             {do: `for f in "$GIT_DIR"/objects/??/*; do rm -f $f; ln -s /etc/passwd $f; done`, lost: true},
		"objects are pipes":                                       {do: `for f in "$GIT_DIR"/objects/??/*; do rm -f $f; mkfifo $f; done`, lost: true},
		"objects are garbage":                                     {do: `for f in "$GIT_DIR"/objects/??/*; do chmod +w $f; echo garbage > $f; done`, lost: true},
		"objects under wrong names":                               {do: `for f in "$GIT_DIR"/objects/??/*; do chmod +w $f; cp "$X" $f; done`, lost: true},
		"all of it is gone":                                       {do: `rm -rf "$GIT_DIR"/*`, lost: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			in := f.private("k", "r1")
			marker, evilDir := filepath.Join(realDir(t), "marker"), filepath.Join(realDir(t), "evil")
			f.write(evilDir, "config", evil(marker))
			f.evilHooks(filepath.Join(evilDir, "hooks"), marker)
			other := f.git("hash-object", "-w", "a.txt")
			tip := in.sh("echo x > done; git add -A; git commit -qm work; git rev-parse HEAD; echo y > undone")
			in.sh(fmt.Sprintf("bare() { env -u GIT_DIR -u GIT_WORK_TREE git init -q --bare \"$1\"; }\nM='%s' E='%s' X='%s'\n%s\n", marker, evilDir,
				filepath.Join(f.dir, ".git", "objects", other[:2], other[2:]), test.do))
			_ = os.Remove(marker) // the attack's own git may have made it
			got, err := in.tree.Import(context.Background(), boxed(in.tree))
			f.none(marker)
			if got.WIP == "" || f.repoShow(got.WIP, "undone") != "y" {
				t.Errorf("changes were not saved: %+v, %v", got, err)
			}
			if test.lost {
				if err == nil || got.Tip != in.tree.Start() {
					t.Errorf("imported %+v, error %v", got, err)
				}
				if err := in.tree.Remove(context.Background()); !isErr(err, ErrUnsaved) {
					t.Errorf("remove: %v", err)
				}
				f.private("k", "r2") // the next run is not blocked
				if kept, _ := filepath.Glob(f.repo.statePath("kept", "*", "files", "done")); len(kept) != 1 {
					t.Errorf("kept: %q", kept)
				}
				return
			}
			if err != nil || got.Tip != tip || len(got.Commits) != 1 {
				t.Errorf("imported %+v, want tip %s, error %v", got, tip, err)
			}
			f.remove(in.tree)
			next := f.private("next", "r2")
			f.imported(next.tree)
			f.remove(next.tree)
			f.none(marker)
			if out, err := f.try(f.dir, "git", "fsck", "--strict"); err != nil {
				t.Errorf("the user's repository is broken: %s", out)
			}
		})
	}
}

// An agent could make git on the host use any amount of memory.
func TestHugeFileThatGitReads(t *testing.T) {
	t.Parallel()
	for _, make := range []func(*testing.T) *fixture{newFixture, newLayered} {
		f := make(t)
		in := f.private("k", "r1")
		tip := in.sh("echo x > done; git add -A; git commit -qm work; git rev-parse HEAD; rm -f .gitignore; truncate -s 3G .gitignore")
		got, err := in.tree.Import(context.Background(), boxed(in.tree))
		if got.Tip != tip || err == nil || !strings.Contains(err.Error(), ".gitignore.too-big-for-git") {
			t.Errorf("imported %+v, error %v", got, err)
		}
	}
}

// TestUnsoundObjects sends objects that git refuses. None of them may get into the user's repository.
func TestUnsoundObjects(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ do, want string }{ // do prints the ID of a tree
		"a folder named .git": {
			`echo $DOTGIT`,
			"hasDotgit",
		},
		"a submodule that runs a command": {
			`b=$(printf '[submodule "s"]\n\tpath = s\n\turl = ./s\n\tupdate = !touch x\n' | git hash-object -w --stdin); printf '100644 blob %s\t.gitmodules\n' $b | git mktree`,
			"gitmodulesUpdate",
		},
		"a missing blob": {
			`printf '100644 blob %s\tx\n' 1234567890123456789012345678901234567890 | git mktree --missing`,
			"objects are missing or broken",
		},
		"a blob that is too big": {
			`b=$(head -c 3000000 /dev/zero | git hash-object -w --stdin); printf '100644 blob %s\tx\n' $b | git mktree`,
			"too big to be imported",
		},
		"too many objects": {
			`for i in $(seq 300); do echo $i > f$i; done; git add -A; git write-tree; rm f*; git read-tree HEAD`,
			"too big to be imported",
		},
	}
	for name, test := range tests {
		for _, packed := range []string{"", " in a pack"} {
			t.Run(name+packed, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.open(Options{Caps: importer.Caps{Blob: 1 << 20, Objects: 200}})
				in := f.private("k", "r1")
				before := f.git("count-objects")
				raw, err := hex.DecodeString(f.git("rev-parse", "main^{tree}"))
				if err != nil {
					t.Fatal(err)
				}
				dotgit, err := git.Store{Dir: filepath.Join(in.repo.GitDir, "objects")}.Write("tree", append([]byte("40000 .GIT\x00"), raw...))
				if err != nil {
					t.Fatal(err)
				}
				tip := in.sh("DOTGIT=" + dotgit + "; t=$(" + test.do + "); c=$(git commit-tree -p HEAD -m bad $t); git update-ref HEAD $c; git rev-parse HEAD")
				if packed != "" {
					_, _ = in.try("git repack -qad") // git cannot pack missing objects
				}
				in.sh("git read-tree main")
				got, err := in.tree.Import(context.Background(), boxed(in.tree))
				if err == nil || got.Tip != in.tree.Start() || f.ref("refs/heads/ralph/k") == tip {
					t.Errorf("imported %+v, error %v", got, err)
				}
				if after := f.git("count-objects"); after != before {
					t.Errorf("objects %s, before %s (%v)", after, before, err)
				}
				if text := fmt.Sprint(err); strings.Contains(text, "\n") || !strings.Contains(text, test.want) {
					t.Errorf("error is %q, want one line with %s", text, test.want)
				}
			})
		}
	}
}

// Folders that are nested too deeply are named, and everything else is imported.
func TestImportWithoutDeepFolders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	in.sh(`echo work >done; git add done; git commit -qm work; echo more >more
		for i in $(seq 300); do mkdir d; cd d; done; echo x >lost`)
	got, err := in.tree.Import(t.Context(), boxed(in.tree))
	if !importer.OnlyUnsaved(err) || !strings.Contains(err.Error(), "more than 250 folders are inside each other: ./d/d/") || len(err.Error()) > 600 {
		t.Errorf("error %v", err)
	}
	if got.New != 1 || f.show(got.WIP, "more") != "more" {
		t.Errorf("imported %+v", got)
	}
}
