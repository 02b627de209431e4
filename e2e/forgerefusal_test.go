package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// A forge that permanently refuses one issue's report or request does not keep ralph from other issues, nor that issue from people.
// `make test` runs each refusal on one forge, `make soak` on both. Package pool tests refusals of every call without a forge.
func TestOneIssueThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, repository) forge{"github": onGitHub, "gitlab": onGitLab} {
		for what, refuses := range map[string]func(method, path string, first string) bool{
			"report": func(method, path, first string) bool {
				return method == http.MethodPost && (strings.HasSuffix(path, "/issues/"+first+"/comments") || strings.HasSuffix(path, "/issues/"+first+"/notes"))
			},
			"request": func(method, path, _ string) bool {
				return method == http.MethodPost && (strings.HasSuffix(path, "/pulls") || strings.HasSuffix(path, "/merge_requests"))
			},
		} {
			if !tested(name == "github", what == "request") {
				continue
			}
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				f := newFaultScene(t, open)
				other := f.issue("Do it too", "Please.")
				f.server.Inject(func(c forgetest.Call) *forgetest.Fault {
					if !refuses(c.Method, c.Path, f.key) {
						return nil
					}
					return &forgetest.Fault{Status: http.StatusForbidden, Body: `{"message":"403 Forbidden"}`}
				})
				env := append(slices.Clone(f.forge.env), "RALPH_WRITE_SPACING=0s")
				for range 8 {
					f.start(t, f.clone, env, append([]string{"work", "--parallel", "1"}, f.flags...)...).end(t)
				}
				for _, key := range []string{f.key, other} {
					if n := f.starts(t)[key]; n != 1 {
						t.Errorf("the agent of %s was started %d times", key, n)
					}
					want := "in-review"
					if what == "request" {
						want = "needs-human"
					}
					if got := f.labels(key); !slices.Contains(got, want) {
						t.Errorf("%s has labels %q, want %s", key, got, want)
					}
				}
				f.start(t, f.clone, f.forge.env, "status").end(t)
				f.scene.clean(t, f.clone)
			})
		}
	}
}
