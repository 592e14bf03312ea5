package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/agenticnexus/agenticnexus/cmd/nexus/batch/stats"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s: got %.6f, want %.6f", what, got, want)
	}
}

// The examples are those of Newcombe, Statistics in Medicine 17:857 (1998), table I, method 3 (score without
// continuity correction).
func TestWilson(t *testing.T) {
	for _, row := range []struct {
		successes, trials int
		low, high         float64
	}{
		{81, 263, 0.2553, 0.3662},
		{15, 148, 0.0624, 0.1605},
		{0, 20, 0, 0.1611},
		{1, 29, 0.0061, 0.1718},
	} {
		i := stats.Wilson(row.successes, row.trials)
		near(t, "low", i.Low, row.low, 0.00005)
		near(t, "high", i.High, row.high, 0.00005)
		near(t, "value", i.Value, float64(row.successes)/float64(row.trials), 1e-12)
	}
	if i := stats.Wilson(0, 0); i.Low != 0 || i.High != 1 {
		t.Errorf("without trials: got %v, want 0 to 1", i)
	}
}

// The first example is that of the vignette "Exact McNemar's Test" of the R package exact2x2 (Fay): 9 and 2 discordant
// pairs have P = 0.06543. The third is that of Armitage and Berry, Statistical Methods in Medical Research (1994),
// p. 127: 12 and 2 have P = 0.0129. The others follow from the binomial distribution.
func TestMcNemar(t *testing.T) {
	for _, row := range []struct {
		worse, better int
		want          float64
	}{
		{9, 2, 0.06543},
		{2, 9, 0.06543},
		{12, 2, 0.01294},
		{0, 0, 1},
		{5, 5, 1},
		{0, 6, 0.03125},
	} {
		near(t, "P", stats.McNemar(row.worse, row.better), row.want, 0.000005)
	}
	if p := stats.McNemar(40_000, 50_000); p < 0 || p > 1e-6 {
		t.Errorf("many pairs: got P = %g, want next to 0", p)
	}
}

// With trials that do not depend on each other the interval is that of Wilson.
func TestClustered(t *testing.T) {
	single := make([]stats.Cluster, 148)
	for i := range single {
		single[i] = stats.Cluster{Trials: 1}
		if i < 15 {
			single[i].Successes = 1
		}
	}
	if got, want := stats.Clustered(single), stats.Wilson(15, 148); got != want {
		t.Errorf("one trial a cluster: got %v, want %v", got, want)
	}
	// Trials of a cluster that all agree count once, but for the correction of k/(k-1).
	same := make([]stats.Cluster, 148)
	for i := range same {
		same[i] = stats.Cluster{Trials: 5, Successes: 5 * single[i].Successes}
	}
	got, want := stats.Clustered(same), stats.Wilson(15, 148)
	near(t, "low", got.Low, want.Low, 0.0005)
	near(t, "high", got.High, want.High, 0.0005)
	all := []stats.Cluster{{Successes: 3, Trials: 3}, {Successes: 3, Trials: 3}}
	if got, want := stats.Clustered(all), stats.Wilson(2, 2); got != want {
		t.Errorf("all passed: got %v, want that of 2 trials, %v", got, want)
	}
}

// In 2,000 suites of 300 cases, repeated three times, the intervals cover the true rate in 93 to 97 %.
func TestClusteredCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, repeats := range []int{1, 3} {
		covered := 0
		const suites, cases = 2000, 300
		for range suites {
			clusters := make([]stats.Cluster, cases)
			for i := range clusters {
				p := 0.98 // a mixture whose mean is 0.82
				if random.Float64() < 0.2 {
					p = 0.18
				}
				clusters[i].Trials = repeats
				for range repeats {
					if random.Float64() < p {
						clusters[i].Successes++
					}
				}
			}
			if i := stats.Clustered(clusters); i.Low <= 0.82 && 0.82 <= i.High {
				covered++
			}
		}
		if share := float64(covered) / suites; share < 0.93 || share > 0.97 {
			t.Errorf("%d repeats: got coverage %.3f, want 0.93 to 0.97", repeats, share)
		}
	}
}

// τ-bench (Yao et al. 2024): pass^k is C(c,k)/C(n,k); here 6 of 8 gives 6/8, 15/28, 15/70 and 0.
func TestPassAll(t *testing.T) {
	clusters := []stats.Cluster{{Successes: 6, Trials: 8}}
	for k, want := range map[int]float64{1: 0.75, 2: 15.0 / 28, 4: 15.0 / 70, 8: 0} {
		got, ok := stats.PassAll(clusters, k)
		if !ok {
			t.Errorf("pass^%d: got none", k)
		}
		near(t, "pass^k", got, want, 1e-12)
	}
	if _, ok := stats.PassAll(clusters, 9); ok {
		t.Error("pass^9 of 8 repeats: got one, want none")
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{15, 20, 35, 40, 50} // the example of Wikipedia's "Percentile", nearest-rank method
	for q, want := range map[float64]float64{0.05: 15, 0.30: 20, 0.40: 20, 0.50: 35, 1: 50} {
		near(t, "percentile", stats.Percentile(values, q), want, 0)
	}
}

// The treated mice of Efron and Tibshirani (1993), table 2.1, have a mean of 86.86, and the bootstrap's standard error
// of that mean is 23.36 (table 2.2). The interval is nearly as wide as a normal one with it, and its bounds are those of
// table 13.1, 45.9 and 135.4, but for chance: all 7^7 resamples give 43.4 and 134.4.
func TestBootstrap(t *testing.T) {
	mice := []float64{94, 197, 16, 38, 99, 141, 23}
	p := stats.Pairs{A: make([]float64, len(mice)), B: mice}
	i := p.MeanDifference(1)
	near(t, "mean", i.Value, 86.86, 0.005)
	near(t, "low", i.Low, 45.9, 4)
	near(t, "high", i.High, 135.4, 4)
	near(t, "width", (i.High-i.Low)/(2*1.96), 23.36, 1.2)
	if again := p.MeanDifference(1); again != i {
		t.Errorf("the same seed: got %v and %v", i, again)
	}
	same := stats.Pairs{A: mice, B: mice}
	if r, ok := same.PercentileRatio(0.5, 1); !ok || r != (stats.Interval{Value: 1, Low: 1, High: 1}) {
		t.Errorf("ratio to itself: got %v", r)
	}
	if _, ok := p.PercentileRatio(0.5, 1); ok {
		t.Error("ratio to 0: got one, want none")
	}
}

// Repeats that say nothing new leave the intervals as they are.
func TestBootstrapCases(t *testing.T) {
	one := stats.Pairs{A: []float64{52, 104, 146, 10, 50, 31, 40, 27, 46}, B: []float64{94, 197, 16, 38, 99, 141, 23, 35, 60}}
	var repeated stats.Pairs
	for i := range one.A {
		for range 5 {
			repeated.A, repeated.B = append(repeated.A, one.A[i]), append(repeated.B, one.B[i])
			repeated.Cases = append(repeated.Cases, i)
		}
	}
	want, got := one.MeanDifference(1), repeated.MeanDifference(1)
	near(t, "low", got.Low, want.Low, 1e-9)
	near(t, "high", got.High, want.High, 1e-9)
	ratio, _ := one.PercentileRatio(0.5, 1)
	if again, ok := repeated.PercentileRatio(0.5, 1); !ok || again != ratio {
		t.Errorf("ratio: got %v, want %v", again, ratio)
	}
	repeated.Cases = make([]int, len(repeated.A)) // one case: all that is known are its lines
	if got := repeated.MeanDifference(1); got.High <= got.Low {
		t.Errorf("one case: got %v, want an interval", got)
	}
}
