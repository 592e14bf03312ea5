package otlp

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// samplerOfEnvironment reads OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG. What is malformed is reported, and all is
// sampled.
func samplerOfEnvironment() sdktrace.Sampler {
	usual := sdktrace.ParentBased(sdktrace.AlwaysSample())
	name := strings.ToLower(strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER")))
	root, parentBased := strings.CutPrefix(name, "parentbased_")
	var sampler sdktrace.Sampler
	switch root {
	case "":
		return usual
	case "always_on":
		sampler = sdktrace.AlwaysSample()
	case "always_off":
		sampler = sdktrace.NeverSample()
	case "traceidratio":
		ratio := 1.0
		if text := strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER_ARG")); text != "" {
			var err error
			if ratio, err = strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				otel.Handle(fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: want a number from 0 to 1, got %q", text))
				ratio = 1
			}
		}
		sampler = sdktrace.TraceIDRatioBased(ratio)
	default:
		otel.Handle(fmt.Errorf("OTEL_TRACES_SAMPLER: %q is not supported; use parentbased_traceidratio or the like", name))
		return usual
	}
	if parentBased {
		return sdktrace.ParentBased(sampler)
	}
	return sampler
}
