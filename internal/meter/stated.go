package meter

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/agents"
)

// stated has the usage that an answer has stated. All events are decoded into one value, and each count keeps its maximum.
// Only fields at these places count: a "usage" in the content of a message is text or data of the model.
type stated struct {
	Model   name   `json:"model"`
	Tokens  tokens `json:"usage"`
	Gemini  gemini `json:"usageMetadata"`
	Tier    tier   `json:"service_tier"` // OpenAI
	Bedrock tier   `json:"serviceTier"`
}

// terms returns the facts besides model and tokens on which the price depends.
func (s *stated) terms() Terms {
	t := Terms{Region: string(s.Tokens.Region), HourWrites: max(s.Tokens.Creation.Hour.n, s.Tokens.Iterations.hour, int64(s.Tokens.CacheDetails))}
	for _, said := range []tier{s.Tier, s.Bedrock, s.Tokens.Tier, s.Tokens.Speed, s.Gemini.Tier, s.Gemini.Traffic} {
		if said != "" && (t.Tier == "" || t.Tier == standard) {
			t.Tier = string(said)
		}
	}
	return t
}

// tokens has the counts of all services whose object is called "usage". No name has two meanings.
type tokens struct {
	// Anthropic, and OpenAI's responses, whose input includes the details.
	Input        count   `json:"input_tokens"`
	InputDetails details `json:"input_tokens_details"`
	Output       count   `json:"output_tokens"`
	CacheRead    count   `json:"cache_read_input_tokens"`
	CacheWrite   count   `json:"cache_creation_input_tokens"`
	Creation     struct {
		Hour count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Iterations iterations `json:"iterations"`
	Tier       tier       `json:"service_tier"`
	Speed      tier       `json:"speed"`
	Region     region     `json:"inference_geo"`

	// OpenAI's chat completions.
	Prompt        count   `json:"prompt_tokens"`
	PromptDetails details `json:"prompt_tokens_details"`
	Completion    count   `json:"completion_tokens"`

	// Bedrock's Converse.
	ConverseInput      count      `json:"inputTokens"`
	ConverseOutput     count      `json:"outputTokens"`
	ConverseCacheRead  count      `json:"cacheReadInputTokens"`
	ConverseCacheWrite count      `json:"cacheWriteInputTokens"`
	CacheDetails       hourTokens `json:"cacheDetails"`
}

// details are parts of the input that the input includes.
type details struct {
	CacheRead  count `json:"cached_tokens"`
	CacheWrite count `json:"cache_write_tokens"`
}

// gemini has the counts of Gemini. The prompt includes cached tokens, but not the results of Gemini's own tools.
type gemini struct {
	Prompt     count `json:"promptTokenCount"`
	Cached     count `json:"cachedContentTokenCount"`
	Tools      count `json:"toolUsePromptTokenCount"`
	Candidates count `json:"candidatesTokenCount"`
	Thoughts   count `json:"thoughtsTokenCount"`
	Tier       tier  `json:"serviceTier"`
	Traffic    tier  `json:"trafficType"` // Vertex
}

// read adds the usage in a JSON text: to begun if the text starts an answer, otherwise to s. Values of an unexpected type
// count as absent.
func (s *stated) read(text []byte, begun *stated) {
	// Gemini has another name for the model. Anthropic's message_start, the final event of OpenAI's responses and Gemini's
	// answers through Code Assist are one level deeper.
	type named struct {
		*stated
		Version *name `json:"modelVersion"`
	}
	here := named{s, &s.Model}
	message, response := named{begun, &begun.Model}, here
	_ = json.Unmarshal(text, &struct {
		named
		Message  *named `json:"message"`
		Response *named `json:"response"`
	}{here, &message, &response})
}

// usage returns the stated counts as agents.Usage. An answer normally has one format; if formats are mixed, the largest count wins.
func (s *stated) usage() (u agents.Usage, seen bool) {
	t, g := &s.Tokens, &s.Gemini
	input, prompt := &t.InputDetails, &t.PromptDetails
	for _, v := range []agents.Usage{
		{
			Input: t.Input.n - input.CacheRead.n - input.CacheWrite.n, Output: t.Output.n,
			CacheRead: max(t.CacheRead.n, input.CacheRead.n), CacheWrite: max(t.CacheWrite.n, input.CacheWrite.n),
		},
		{
			Input: t.Prompt.n - prompt.CacheRead.n - prompt.CacheWrite.n, Output: t.Completion.n,
			CacheRead: prompt.CacheRead.n, CacheWrite: prompt.CacheWrite.n,
		},
		{
			Input: t.Iterations.input, Output: t.Iterations.output,
			CacheRead: t.Iterations.cacheRead, CacheWrite: t.Iterations.cacheWrite,
		},
		{
			Input: t.ConverseInput.n, Output: t.ConverseOutput.n,
			CacheRead: t.ConverseCacheRead.n, CacheWrite: t.ConverseCacheWrite.n,
		},
		{
			Input: max(g.Prompt.n-g.Cached.n, 0) + g.Tools.n, Output: g.Candidates.n + g.Thoughts.n,
			CacheRead: g.Cached.n,
		},
	} {
		u = agents.Usage{
			Input: max(u.Input, v.Input), Output: max(u.Output, v.Output),
			CacheRead: max(u.CacheRead, v.CacheRead), CacheWrite: max(u.CacheWrite, v.CacheWrite),
		}
	}
	counts, also := *t, *g // the stated counts; terms are not usage
	counts.Tier, counts.Speed, counts.Region, also.Tier, also.Traffic = "", "", "", "", ""
	return u, counts != tokens{} || also != gemini{}
}

// count is a number of tokens.
type count struct {
	n      int64
	stated bool
}

// UnmarshalJSON never fails. It caps implausible numbers, and ignores negative numbers and other types.
func (c *count) UnmarshalJSON(raw []byte) error {
	const most = 1 << 40
	n, err := strconv.ParseFloat(string(raw), 64)
	if math.IsInf(n, 1) || err == nil && n >= 0 {
		c.n, c.stated = max(c.n, int64(math.Ceil(min(n, most)))), true
	}
	return nil
}

// name is the first model name in an answer.
type name string

// UnmarshalJSON never fails.
func (n *name) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil && *n == "" && isModel(s) {
		*n = name(s)
	}
	return nil
}

// hourTokens is the number of tokens written to the cache for one hour, summed over Bedrock's list.
type hourTokens int64

// UnmarshalJSON never fails.
func (h *hourTokens) UnmarshalJSON(raw []byte) error {
	var list []struct {
		TTL    string `json:"ttl"`
		Tokens count  `json:"inputTokens"`
	}
	_ = json.Unmarshal(raw, &list)
	var sum int64
	for _, part := range list {
		if part.TTL == "1h" {
			sum += part.Tokens.n
		}
	}
	*h = max(*h, hourTokens(sum))
	return nil
}

// iterations is the sum of Anthropic's list of the model's calls for one answer. The counts beside the list leave out calls that cost
// money, such as the one that summarises the conversation.
type iterations struct{ input, output, cacheRead, cacheWrite, hour int64 }

// UnmarshalJSON never fails.
func (s *iterations) UnmarshalJSON(raw []byte) error {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list)
	var sum iterations
	for _, one := range list {
		var t tokens
		_ = json.Unmarshal(one, &t)
		sum.input, sum.output = sum.input+t.Input.n, sum.output+t.Output.n
		sum.cacheRead, sum.cacheWrite = sum.cacheRead+t.CacheRead.n, sum.cacheWrite+t.CacheWrite.n
		sum.hour += t.Creation.Hour.n
	}
	s.input, s.output = max(s.input, sum.input), max(s.output, sum.output)
	s.cacheRead, s.cacheWrite, s.hour = max(s.cacheRead, sum.cacheRead), max(s.cacheWrite, sum.cacheWrite), max(s.hour, sum.hour)
	return nil
}

// standard is the tier of requests that ask for none, whatever the service calls it.
const standard = "standard"

// tier is the last service tier in an answer, in lower case.
type tier string

// UnmarshalJSON never fails.
func (t *tier) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		var typed struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(raw, &typed)
		s = typed.Type
	}
	s = strings.ToLower(s)
	for _, prefix := range []string{"service_tier_", "on_demand_"} {
		s = strings.TrimPrefix(s, prefix)
	}
	switch s {
	case "default", "auto", "on_demand", "unspecified", "standard_only":
		s = standard
	}
	if isModel(s) {
		*t = tier(s)
	}
	return nil
}

// region is the last region in an answer in which the model runs, in lower case; empty: any.
type region string

// UnmarshalJSON never fails.
func (r *region) UnmarshalJSON(raw []byte) error {
	var s string
	_ = json.Unmarshal(raw, &s)
	if s = strings.ToLower(s); s != "global" && s != "not_available" && isModel(s) {
		*r = region(s)
	}
	return nil
}
