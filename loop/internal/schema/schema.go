// Package schema compiles the JSON Schemas that users supply for structured output.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Compile compiles a schema; nil if there is none. It reads neither files nor the network.
func Compile(text []byte) (*jsonschema.Resolved, error) {
	if text == nil {
		return nil, nil
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if err := (checker{root: doc}).checkSchema(doc, nil); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// checker finds errors that the library finds only during validation, or not at all: an unknown draft or type, a reference to
// another document, and a reference to itself, which would recurse without end.
type checker struct{ root any }

// checkSchema checks a schema and its subschemas. open has the references that lead to it and apply to the same value.
func (c checker) checkSchema(doc any, pendingRefs []string) error {
	schema, ok := doc.(map[string]any)
	if _, truth := doc.(bool); truth {
		return nil
	}
	if !ok {
		return errors.New("a schema is an object, true or false")
	}
	if draft, _ := schema["$schema"].(string); draft != "" &&
		!strings.Contains(draft, "/draft/2020-12/") && !strings.Contains(draft, "/draft-07/") {
		return fmt.Errorf("%s is not supported; use draft 2020-12 or draft-07", draft)
	}
	kinds, several := schema["type"].([]any)
	if kind, given := schema["type"]; given && !several {
		kinds = []any{kind}
	}
	for _, kind := range kinds {
		switch kind {
		case "array", "boolean", "integer", "null", "number", "object", "string":
		default:
			return fmt.Errorf("%v is not a type", kind)
		}
	}
	if err := c.checkReference(schema, pendingRefs); err != nil {
		return err
	}
	for key, value := range schema {
		list, here := subschemas(key, value)
		if pendingRefs != nil && !here {
			continue // it is checked at its own place
		}
		for _, s := range list {
			if err := c.checkSchema(s, pendingRefs); err != nil {
				return err
			}
		}
	}
	return nil
}

// subschemas returns the schemas of one keyword, and whether they apply to the same value or to a part of it.
func subschemas(key string, value any) (list []any, sameValue bool) {
	switch key {
	case "dependentSchemas":
		sameValue = true
		fallthrough
	case "$defs", "definitions", "properties", "patternProperties":
		named, _ := value.(map[string]any)
		return slices.Collect(maps.Values(named)), sameValue
	case "allOf", "anyOf", "oneOf":
		list, _ = value.([]any)
		return list, true
	case "not", "if", "then", "else":
		return []any{value}, true
	case "items", "prefixItems":
		if several, ok := value.([]any); ok {
			return several, false
		}
		return []any{value}, false
	case "additionalProperties", "propertyNames", "additionalItems", "contains", "unevaluatedItems", "unevaluatedProperties":
		return []any{value}, false
	}
	return nil, false
}

// checkReference follows "$ref", which must refer to a place in this document.
func (c checker) checkReference(schema map[string]any, pendingRefs []string) error {
	if _, dynamic := schema["$dynamicRef"]; dynamic {
		return errors.New("$dynamicRef is not supported; use $ref")
	}
	ref, ok := schema["$ref"].(string)
	if !ok {
		return nil
	}
	path, local := strings.CutPrefix(ref, "#")
	switch {
	case !local || path != "" && path[0] != '/':
		return fmt.Errorf("$ref %q: references to other documents are not followed; "+
			"put the definition into the schema and write #/$defs/NAME", ref)
	case slices.Contains(pendingRefs, ref):
		return fmt.Errorf("$ref %q leads back to itself", ref)
	}
	target := c.root
	for _, step := range strings.Split(path, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		parts, _ := target.(map[string]any)
		if target, ok = parts[step]; !ok {
			return nil // into a list, or nowhere: the library reports that
		}
	}
	return c.checkSchema(target, append(slices.Clip(pendingRefs), ref))
}
