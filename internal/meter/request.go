package meter

import (
	"bytes"
	"slices"
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
	// denseToken is the size of a token in bytes in text that is denser than usual.
	denseToken = 2
	// imageTokens is more than services count for one image, which may be a few bytes. maxInput is the longest input of current models
	// in tokens; a file of a few bytes, such as a PDF, may have as many.
	imageTokens, maxInput = 10_000, 1_000_000
)

// Request describes what a request asks for.
type Request struct {
	// Most is the most that the answer may use. The input is estimated from the size of the body, and its images and files.
	Most agents.Usage
	// Models are the models that the request names; the last is the main one. A name that cannot be one is "".
	Models         []string
	Tiers, Regions map[string]bool // service tiers and regions that it names
	// Compacts says that the service may first summarise the conversation.
	Compacts bool
}

// Model returns the main model; "" if the request names none.
func (r Request) Model() string {
	if len(r.Models) == 0 {
		return ""
	}
	return r.Models[len(r.Models)-1]
}

// Asked returns what a request with this body, which should be JSON, asks for.
func Asked(body []byte, path string) Request {
	r := Request{Tiers: map[string]bool{}, Regions: map[string]bool{}}
	if named := modelOf(path); named != "" {
		r.Models = []string{named}
	}
	var limit, answers int64
	var read func(v gjson.Result, outer bool)
	read = func(v gjson.Result, outer bool) {
		v.ForEach(func(key, value gjson.Result) bool { // also of duplicates, since services differ in which one counts
			name := strings.ReplaceAll(strings.ToLower(key.Str), "_", "")
			switch {
			case outer && name == "model":
				r.addModel(value)
			case outer && (name == "models" || name == "fallbacks"): // tried after the main one
				others := Request{}
				value.ForEach(func(_, other gjson.Result) bool {
					if model := other.Get("model"); model.Exists() {
						other = model
					}
					others.addModel(other)
					return true
				})
				r.Models = append(others.Models, r.Models...)
			case outer && (name == "generationconfig" || name == "inferenceconfig"):
				if value.IsObject() {
					read(value, false)
				}
			case outer && (name == "contextmanagement" || name == "compaction"):
				r.Compacts = r.Compacts || compacts(value, name == "compaction")
			case outer && (name == "servicetier" || name == "speed"):
				var named tier
				if _ = named.UnmarshalJSON([]byte(value.Raw)); named != "" {
					r.Tiers[string(named)] = true
				}
			case outer && name == "inferencegeo":
				var named region
				if _ = named.UnmarshalJSON([]byte(value.Raw)); named != "" {
					r.Regions[string(named)] = true
				}
			case value.Type != gjson.Number:
			case name == "maxoutputtokens",
				(name == "maxtokens" || name == "maxcompletiontokens") && !strings.HasSuffix(path, "/responses"): // means nothing there
				limit = max(limit, value.Int())
			case (name == "n" || name == "bestof") && strings.HasSuffix(path, "/completions"), name == "candidatecount" && !outer:
				answers = max(answers, value.Int())
			}
			return true
		})
	}
	if v := gjson.ParseBytes(body); v.IsObject() {
		read(v, true)
	}
	if limit <= 0 || strings.HasSuffix(path, "/compact") { // a summary has no limit
		limit = maxOutput
	}
	input := int64(len(body)) / denseToken
	input = max(input, min(input+mediaTokens(body), maxInput))
	r.Most = agents.Usage{Input: input, Output: min(limit, maxOutput) * max(1, min(answers, maxAnswers))}
	if r.Compacts {
		r.Most.Input, r.Most.Output = 2*r.Most.Input, r.Most.Output+maxOutput
	}
	return r
}

// compacts reports whether a field may ask for a summary: always, or by a name in its value.
func compacts(v gjson.Result, always bool) bool {
	if always {
		return v.Type != gjson.Null && v.Type != gjson.False
	}
	return strings.Contains(strings.ToLower(v.Raw), "compact") || strings.Contains(v.Raw, `\u`)
}

func (r *Request) addModel(v gjson.Result) {
	name := v.Str
	if !isModel(name) {
		name = ""
	}
	r.Models = append(r.Models, name)
}

// mediaTokens returns the most tokens of the images and files in a body, by the strings that introduce them. A model may also speak of
// files, which are as large as a whole context: so their names count only as keys, or as values of the keys for types.
func mediaTokens(body []byte) (tokens int64) {
	key := "" // the last one, plain
	for {
		from := bytes.IndexByte(body, '"')
		if from < 0 {
			return min(tokens, maxInput)
		}
		body = body[from+1:]
		end := bytes.IndexByte(body, '"')
		for end > 0 && escaped(body[:end]) {
			next := bytes.IndexByte(body[end+1:], '"')
			if next < 0 {
				return min(tokens, maxInput)
			}
			end += 1 + next
		}
		if end < 0 {
			return min(tokens, maxInput)
		}
		begin := beginning(body[:end])
		isKey := bytes.HasPrefix(bytes.TrimLeft(body[end+1:], " \t\r\n"), []byte(":"))
		if isKey {
			key = strings.ReplaceAll(begin, "_", "")
		}
		switch {
		case strings.HasPrefix(begin, "image/") && end <= maxBeginning, strings.HasPrefix(begin, "data:image/"):
			tokens += imageTokens
		case strings.HasPrefix(begin, "application/pdf") && end <= maxBeginning && slices.Contains([]string{"mediatype", "mimetype", "format"}, key),
			isKey && key == "filedata":
			return maxInput
		}
		body = body[end+1:]
	}
}

// escaped reports whether the quote after a text is escaped.
func escaped(text []byte) bool {
	return (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 1
}

const maxBeginning = 100 // bytes; enough for a type or key of which every character is escaped

// beginning returns the first characters of a JSON string in lower case.
func beginning(text []byte) string {
	text = text[:min(len(text), maxBeginning)]
	if bytes.IndexByte(text, '\\') < 0 {
		return strings.ToLower(string(text))
	}
	return strings.ToLower(gjson.Parse(`"` + string(text) + `"`).Str)
}
