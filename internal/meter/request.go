package meter

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ralph-pool/ralph/agents"
)

const (
	// maxOutput is the longest answer of current models in tokens. It bounds what a request may claim to ask for, because the caps
	// of all runs count it.
	maxOutput = 128_000
	// maxAnswers is the largest number of answers that a service gives to one request.
	maxAnswers = 128
)

// Asked returns the most that the answer to a request may use, and the model and the service tiers that the request names. The input
// is estimated from the size of the body, which should be JSON.
func Asked(body []byte, path string) (u agents.Usage, model string, tiers map[string]bool) {
	model, tiers = modelOf(path), map[string]bool{}
	var limit, answers int64
	var read func(v gjson.Result, outer bool)
	read = func(v gjson.Result, outer bool) {
		v.ForEach(func(key, value gjson.Result) bool { // also of duplicates, since services differ in which one counts
			name := strings.ReplaceAll(strings.ToLower(key.Str), "_", "")
			switch {
			case outer && name == "model" && isModel(value.Str):
				model = value.Str
			case outer && (name == "generationconfig" || name == "inferenceconfig"):
				if value.IsObject() {
					read(value, false)
				}
			case outer && (name == "servicetier" || name == "speed"):
				var named tier
				if _ = named.UnmarshalJSON([]byte(value.Raw)); named != "" {
					tiers[string(named)] = true
				}
			case value.Type != gjson.Number:
			case name == "maxoutputtokens",
				(name == "maxtokens" || name == "maxcompletiontokens") && !strings.HasSuffix(path, "/responses"): // means nothing there
				limit = max(limit, value.Int())
			case name == "n" && strings.HasSuffix(path, "/completions"), name == "candidatecount" && !outer:
				answers = max(answers, value.Int())
			}
			return true
		})
	}
	if v := gjson.ParseBytes(body); v.IsObject() {
		read(v, true)
	}
	if limit <= 0 {
		limit = maxOutput
	}
	u.Input, u.Output = int64(len(body))/BytesPerToken, min(limit, maxOutput)*max(1, min(answers, maxAnswers))
	return u, model, tiers
}
