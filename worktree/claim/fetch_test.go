package claim

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// oneFile writes a tree with one file, and returns the names of both.
func oneFile(t *testing.T, at git.Store, content []byte) (tree, blob string) {
	t.Helper()
	blob, err := at.Write("blob", content)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := hex.DecodeString(blob)
	if err != nil {
		t.Fatal(err)
	}
	if tree, err = at.Write("tree", append([]byte("100644 file\x00"), raw...)); err != nil {
		t.Fatal(err)
	}
	return tree, blob
}

// Anybody with push access can attach anything to a claim. None of it is stored here, and too large objects are not
// fetched.
func TestClaimWithFiles(t *testing.T) {
	t.Parallel()
	const partial = "in a partial clone"
	for name, most := range map[string]int64{"little": maxFetchBytes, "too much": 1 << 20, partial: maxFetchBytes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, true)
			if name == partial {
				s.sh("git", "-C", s.bare(), "config", "uploadpack.allowFilter", "true")
				s.git("config", "core.repositoryFormatVersion", "1")
				s.git("config", "extensions.partialClone", "origin")
				s.git("config", "remote.origin.promisor", "true")
				s.git("config", "remote.origin.partialCloneFilter", "blob:none")
			}
			claimed(t, s.clone("other").store, "r1")
			at := git.Store{Dir: filepath.Join(s.bare(), "objects")}
			noise := make([]byte, 2<<20)
			_, _ = rand.Read(noise)
			tree, blob := oneFile(t, at, noise)
			commit, err := at.Commit(tree, nil, `{"version":1,"nonce":"x","generation":1,"record":{"run":"r2"}}`, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			s.sh("git", "-C", s.bare(), "update-ref", prefix+"big", commit)
			refs := s.store.refs.(remoteRefs)
			refs.maxFetch = most
			s.store.refs = refs
			for range 2 {
				states, err := s.store.List(t.Context())
				if big := states["big"]; err != nil || len(states) != 2 || (big.Err == nil) != (most == maxFetchBytes) || states["k"].Holder.Run != "r1" {
					t.Errorf("%+v, %v", states, err)
				}
			}
			if here := s.git("cat-file", "--batch-all-objects", "--batch-check"); strings.Contains(here, blob) || strings.Contains(here, commit) {
				t.Errorf("it is here:\n%s", here)
			}
			if left, err := filepath.Glob(filepath.Join(s.dir, ".git", "objects", "tmp_*")); err != nil || len(left) > 0 {
				t.Errorf("left: %q, %v", left, err)
			}
			if got := s.git("fsck", "--no-dangling"); got != "" {
				t.Error(got)
			}
		})
	}
}

// Claims that are too large together are not fetched together again: each is fetched separately.
func TestTooMuchTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	at := git.Store{Dir: filepath.Join(s.bare(), "objects")}
	for i := range 2 {
		commit, err := at.Message(fmt.Sprintf(`{"version":1,"nonce":"%d%s","generation":1,"record":{"run":"r"}}`, i, noise(t, 4*largeBytes)), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.sh("git", "-C", s.bare(), "update-ref", fmt.Sprintf("%sk%d", prefix, i), commit)
	}
	refs := s.store.refs.(remoteRefs)
	refs.maxFetch = 3 * largeBytes // bytes in a pack, where a claim takes half as many as here
	s.store.refs = refs
	calls := filepath.Join(t.TempDir(), "calls")
	s.script(calls+".sh", `echo call >>"`+calls+`"; exec git-upload-pack "$@"`)
	s.git("config", "remote.origin.uploadpack", calls+".sh")
	if states, err := s.store.List(t.Context()); err != nil || len(states) != 2 || states["k0"].Err != nil || states["k1"].Err != nil {
		t.Errorf("%+v, %v", states, err)
	}
	said, err := os.ReadFile(calls)
	if got := strings.Count(string(said), "call"); err != nil || got != 4 { // the list of refs, both claims, and each claim
		t.Errorf("%d calls, %v", got, err)
	}
}

// A remote that hangs while it sends all claims may still send single ones.
func TestClaimsOfARemoteThatHangs(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	at := git.Store{Dir: filepath.Join(s.bare(), "objects")}
	for i := range 2 {
		commit, err := at.Message(fmt.Sprintf(`{"version":1,"nonce":"%d","generation":1,"record":{"run":"r"}}`, i), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.sh("git", "-C", s.bare(), "update-ref", fmt.Sprintf("%sk%d", prefix, i), commit)
	}
	refs := s.store.refs.(remoteRefs)
	refs.fetchTimeout = 5 * time.Second // each of the other calls takes a part of a second
	s.store.refs = refs
	calls := filepath.Join(t.TempDir(), "calls")
	s.script(calls+".sh", `echo call >>"`+calls+`"; if test $(wc -l <"`+calls+`") = 2; then exec sleep 1000; fi; exec git-upload-pack "$@"`)
	s.git("config", "remote.origin.uploadpack", calls+".sh")
	if states, err := s.store.List(t.Context()); err != nil || len(states) != 2 || states["k0"].Err != nil || states["k1"].Err != nil {
		t.Errorf("%+v, %v", states, err)
	}
}

// noise returns incompressible text.
func noise(t *testing.T, size int) string {
	t.Helper()
	b := make([]byte, size/2)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// A clone that sees a backlog for the first time stores one pack, not a file for each claim.
func TestManyClaimsAreKeptTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	const many = maxLooseClaims + 1
	at := git.Store{Dir: filepath.Join(s.bare(), "objects")}
	var commits []string
	for i := range many {
		commit, err := at.Message(fmt.Sprintf(`{"version":1,"nonce":"%d","generation":1,"record":{"run":"r%d"}}`, i, i), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.sh("git", "-C", s.bare(), "update-ref", fmt.Sprintf("%sk%d", prefix, i), commit)
		commits = append(commits, commit)
	}
	states, err := s.store.List(t.Context())
	if err != nil || len(states) != many {
		t.Fatalf("%d claims, %v", len(states), err)
	}
	for key, state := range states {
		if want := "r" + strings.TrimPrefix(key, "k"); state.Err != nil || state.Record.Run != want {
			t.Errorf("%s: %+v, want run %s", key, state, want)
		}
	}
	here := s.git("cat-file", "--batch-all-objects", "--batch-check")
	for _, commit := range commits {
		if !strings.Contains(here, commit) {
			t.Errorf("%s is not kept", commit)
		}
	}
	if packs, err := filepath.Glob(filepath.Join(s.dir, ".git", "objects", "pack", "*.pack")); err != nil || len(packs) != 1 {
		t.Errorf("packs: %q, %v", packs, err)
	}
	if got := s.git("fsck", "--no-dangling"); got != "" {
		t.Error(got)
	}
}

// Git 2.40 and newer would fetch bundles first and keep them with refs.
func TestClaimsAreFetchedWithoutBundles(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	other := s.clone("other")
	claimed(t, other.store, "r1")
	other.git("commit", "-q", "--allow-empty", "-m", "second")
	bundle := filepath.Join(t.TempDir(), "bundle")
	other.git("bundle", "create", "-q", bundle, "main")
	s.git("config", "fetch.bundleURI", bundle)
	if states, err := s.store.List(t.Context()); err != nil || states["k"].Holder.Run != "r1" {
		t.Errorf("%+v, %v", states, err)
	}
	if refs := s.git("for-each-ref", "refs/bundles"); refs != "" {
		t.Error(refs)
	}
}

// Claims that are not stored here are kept in memory: nobody with push access may fill that.
func TestLargeClaimsWithFilesFillNoMemory(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	at := git.Store{Dir: filepath.Join(s.bare(), "objects")}
	tree, _ := oneFile(t, at, nil)
	for n := range 3 {
		commit, err := at.Commit(tree, nil, strings.Repeat(strconv.Itoa(n), 2*largeBytes), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.sh("git", "-C", s.bare(), "update-ref", fmt.Sprintf("%sk%d", prefix, n), commit)
		for range 2 { // the first iteration fetches it
			if states, err := s.store.List(t.Context()); err != nil || len(states) != n+1 || states["k0"].Err == nil || !strings.Contains(states["k0"].Err.Error(), "too large") {
				t.Errorf("%+v, %v", states, err)
			}
		}
	}
	s.store.refs.(remoteRefs).notStored.Range(func(commit, object any) bool {
		if size := len(object.(string)); size > largeBytes {
			t.Errorf("%s keeps %d bytes", commit, size)
		}
		return true
	})
}
