class Agenticnexus < Formula
  desc "One MCP server in front of many, with a planner"
  homepage "https://github.com/agenticnexus/agenticnexus"
  version "VERSION"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/agenticnexus/agenticnexus/releases/download/vVERSION/agenticnexus_VERSION_darwin_arm64.tar.gz"
      sha256 "SHA256_darwin_arm64"
    end
    on_intel do
      url "https://github.com/agenticnexus/agenticnexus/releases/download/vVERSION/agenticnexus_VERSION_darwin_amd64.tar.gz"
      sha256 "SHA256_darwin_amd64"
    end
  end
  on_linux do
    on_arm do
      url "https://github.com/agenticnexus/agenticnexus/releases/download/vVERSION/agenticnexus_VERSION_linux_arm64.tar.gz"
      sha256 "SHA256_linux_arm64"
    end
    on_intel do
      url "https://github.com/agenticnexus/agenticnexus/releases/download/vVERSION/agenticnexus_VERSION_linux_amd64.tar.gz"
      sha256 "SHA256_linux_amd64"
    end
  end

  def install
    bin.install "nexus"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/nexus"
    zsh_completion.install "completions/_nexus"
    fish_completion.install "completions/nexus.fish"
  end

  service do
    run [opt_bin/"nexus", "serve", "--config", etc/"agenticnexus"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/nexus version")
    assert_match "30", shell_output("#{bin}/nexus query --demo 'What is 15% of $200?'")
  end
end
