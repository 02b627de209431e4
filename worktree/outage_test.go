package worktree

import (
	"context"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// gitServer is a remote over HTTP that can fail.
type gitServer struct {
	*httptest.Server
	faults atomic.Int32 // number of requests that get a 503; negative: all
	asked  atomic.Int32
}

func (f *fixture) gitServer() *gitServer {
	f.Helper()
	root := realDir(f.T)
	f.sh("", "git", "init", "-q", "--bare", "-b", "main", filepath.Join(root, "origin.git"))
	f.sh(filepath.Join(root, "origin.git"), "git", "config", "http.receivepack", "true")
	backend := &cgi.Handler{
		Path: filepath.Join(f.sh("", "git", "--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=" + os.DevNull},
	}
	s := &gitServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if n := s.faults.Load(); n < 0 || n > 0 && s.faults.Add(-1) >= 0 {
			http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	f.Cleanup(s.Close)
	f.git("remote", "add", "origin", s.URL+"/origin.git")
	f.git("push", "-q", "origin", "main")
	return s
}

// A single fault of the remote, at any request of a claim, a read or a push, goes unnoticed. The pauses use the given
// clock.
func TestRemoteFaultsPass(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.gitServer()
	slept := 0
	repo := f.open(Options{Remote: "origin", Sleep: func(context.Context, time.Duration) error { slept++; return nil }})
	ctx := t.Context()
	fault := func() { s.faults.Store(2) }
	fault()
	claim, err := repo.Claim(ctx, "a", Holder{Owner: "me", Run: "1"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	fault()
	if err := claim.Renew(ctx); err != nil {
		t.Error(err)
	}
	fault()
	if claims, err := repo.Claims(ctx); err != nil || len(claims) != 1 {
		t.Errorf("Claims: %v, %v", claims, err)
	}
	fault()
	if tips, err := repo.RemoteTips(ctx, "main"); err != nil || tips["main"] != f.base().Commit {
		t.Errorf("RemoteTips: %v, %v", tips, err)
	}
	tip := f.commit(f.dir, "b.txt", "two\n", "second")
	fault()
	if err := repo.remote.Push(ctx, git.Edit{Ref: "refs/heads/ralph/a", New: tip}); err != nil {
		t.Error(err)
	}
	if slept != 10 {
		t.Errorf("%d pauses, want 10", slept)
	}
}

// An outage is distinguished from a refusal, and not every command waits for its end.
func TestRemoteOutage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.gitServer()
	repo := f.open(Options{Remote: "origin", Sleep: func(context.Context, time.Duration) error { return nil }})
	s.faults.Store(-1)
	s.asked.Store(0)
	for _, requests := range []int32{4, 5, 6} {
		_, err := repo.RemoteTips(t.Context(), "main")
		if !errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrRemote) || !strings.Contains(err.Error(), "503") {
			t.Errorf("RemoteTips: %v", err)
		}
		if n := s.asked.Load(); n != requests {
			t.Errorf("%d requests, want %d", n, requests)
		}
	}
	f.git("remote", "set-url", "origin", filepath.Join(f.dir, "nowhere"))
	if _, err := repo.RemoteTips(t.Context(), "main"); errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrRemote) {
		t.Errorf("a wrong address: %v", err)
	}
}
