package toolchain

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

var (
	// nodeImage is the line of a build file that says which Node.js an image has.
	nodeImage = pattern.Lazy(`(?m)^FROM (?:\S*/)?node:(\d+)`)
	number    = pattern.Lazy(`\d+`)
)

// OldNode reports that a project wants a newer Node.js than the image of a build file has: wanted is what package.json says, has the
// version of the image. wanted is empty where that is not so, or not known.
func OldNode(top, buildFile string) (wanted string, has int) {
	text, err := os.ReadFile(filepath.Join(top, "package.json"))
	var project struct{ Engines struct{ Node string } }
	if err != nil || json.Unmarshal(text, &project) != nil {
		return "", 0
	}
	build, err := os.ReadFile(buildFile)
	from := nodeImage().FindSubmatch(build)
	if err != nil || from == nil {
		return "", 0
	}
	has, _ = strconv.Atoi(string(from[1]))
	for one := range strings.SplitSeq(project.Engines.Node, "||") { // the first number of each is its least, or its most
		least, err := strconv.Atoi(number().FindString(one))
		if err != nil || least <= has || strings.HasPrefix(strings.TrimSpace(one), "<") {
			return "", has
		}
	}
	return project.Engines.Node, has
}
