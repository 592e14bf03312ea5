package otlp

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
)

// sampler decides which spans are recorded, as the specification's samplers do.
type sampler struct {
	parentBased bool   // follow the parent's decision, if there is a parent
	most        uint64 // exclusive limit of the last 63 bits of sampled trace ids
}

const (
	none = 0
	all  = 1 << 63
)

func (s sampler) samples(parent trace.SpanContext, id trace.TraceID) bool {
	if s.parentBased && parent.IsValid() {
		return parent.IsSampled()
	}
	return binary.BigEndian.Uint64(id[8:])>>1 < s.most
}

// samplerOfEnvironment reads OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG. It reports malformed values and then
// samples all spans.
func samplerOfEnvironment() sampler {
	name := strings.ToLower(strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER")))
	root, parentBased := strings.CutPrefix(name, "parentbased_")
	switch root {
	case "":
		return sampler{true, all}
	case "always_on":
		return sampler{parentBased, all}
	case "always_off":
		return sampler{parentBased, none}
	case "traceidratio":
		ratio := 1.0
		if text := strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER_ARG")); text != "" {
			var err error
			if ratio, err = strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				otel.Handle(fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: want a number from 0 to 1, got %q", text))
				ratio = 1
			}
		}
		return sampler{parentBased, uint64(ratio * all)}
	}
	otel.Handle(fmt.Errorf("OTEL_TRACES_SAMPLER: %q is not supported; use parentbased_traceidratio or the like", name))
	return sampler{true, all}
}
