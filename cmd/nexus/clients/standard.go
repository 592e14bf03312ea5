package clients

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/jsonc"
	"github.com/agenticnexus/agenticnexus/internal/pattern"
)

// Standard returns entries in the form that desktop clients share, as the JSON text of a file with mcpServers. It
// leaves out those that neither start a command nor name an address, such as the extensions of Zed, and the one named
// without.
func (c *Client) Standard(servers Servers, without string) (text []byte, names []string, err error) {
	all := jsonc.Object{}
	for _, s := range servers {
		fields, err := jsonc.Members(s.Value.(json.RawMessage))
		if err != nil || s.Name == without {
			continue
		}
		if fields = c.standard(fields); slices.ContainsFunc(fields, isSource) {
			all, names = append(all, jsonc.Member{Name: s.Name, Value: fields}), append(names, s.Name)
		}
	}
	text, err = json.Marshal(jsonc.Object{{Name: "mcpServers", Value: all}})
	return text, names, err
}

// isSource reports whether a member tells how to reach a server.
func isSource(m jsonc.Member) bool {
	raw, isRaw := m.Value.(json.RawMessage)
	isText := !isRaw || strings.HasPrefix(string(raw), `"`)
	return isText && slices.Contains([]string{"command", "url", "httpUrl", "serverUrl"}, m.Name)
}

// dollar matches the variables of Gemini CLI that have no braces.
var dollar = pattern.New(`\$([A-Z_][A-Z0-9_]*)\b`)

// standard returns the members of an entry in the shared form.
func (c *Client) standard(fields jsonc.Object) (out jsonc.Object) {
	headers := jsonc.Object{}
	typed := false
	for _, f := range fields {
		raw := f.Value.(json.RawMessage)
		if c.Name == "gemini" {
			raw = dollar().ReplaceAll(raw, []byte("$${$1}"))
		}
		switch f.Name {
		case "headers", "http_headers":
			own, err := jsonc.Members(raw)
			if err == nil {
				headers = append(headers, own...)
			}
			continue
		case "env_http_headers":
			var own map[string]string
			_ = json.Unmarshal(raw, &own) // what has another form is left out
			for _, name := range slices.Sorted(maps.Keys(own)) {
				headers = append(headers, jsonc.Member{Name: name, Value: "${" + own[name] + "}"})
			}
			continue
		case "bearer_token_env_var":
			var variable string
			_ = json.Unmarshal(raw, &variable)
			headers = append(headers, jsonc.Member{Name: authorization, Value: "Bearer ${" + variable + "}"})
			continue
		case "enabled":
			if string(raw) == "false" {
				out = append(out, jsonc.Member{Name: "disabled", Value: true})
			}
			continue
		case "source":
			continue
		case "tools": // of Copilot: a list
			if strings.HasPrefix(string(raw), "[") {
				if string(raw) != `["*"]` {
					out = append(out, jsonc.Member{Name: "tools", Value: jsonc.Object{{Name: "allow", Value: raw}}})
				}
				continue
			}
		case "type":
			if typed = true; string(raw) == `"local"` {
				raw = json.RawMessage(`"stdio"`)
			}
		}
		out = append(out, jsonc.Member{Name: f.Name, Value: raw})
	}
	if len(headers) > 0 {
		out = append(out, jsonc.Member{Name: "headers", Value: headers})
	}
	if c.Name == "gemini" && !typed && slices.ContainsFunc(out, func(m jsonc.Member) bool { return m.Name == "url" }) {
		out = append(out, jsonc.Member{Name: "type", Value: "sse"})
	}
	return out
}
