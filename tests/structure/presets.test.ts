// Presets that need clang take the one that is there.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { read, root } from './files.js';

const cmake = execFileSync('sh', ['-c', 'command -v cmake'], { encoding: 'utf8' }).trim();

describe('presets', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'qsf-clang-'));
    mkdirSync(join(folder, 'bin'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  /** Programs that say this version. */
  const compilers = (suffix: string, version: string) => {
    for (const name of [`clang${suffix}`, `clang++${suffix}`]) {
      const path = join(folder, 'bin', name);
      writeFileSync(path, `#!/bin/sh\necho ${version}\n`);
      chmodSync(path, 0o755);
    }
  };

  /** What cmake/clang.cmake chooses of them. */
  const chosen = (...args: string[]) => {
    const script = join(folder, 'ask.cmake');
    writeFileSync(script, `include("${join(root, 'cmake', 'clang.cmake')}")\nmessage("\${CMAKE_CXX_COMPILER}")\n`);
    const fixed = ['-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF', '-P', script];
    const asked = spawnSync(cmake, [...args, ...fixed], {
      env: { PATH: join(folder, 'bin') },
      encoding: 'utf8',
    });
    return { failed: asked.status !== 0, told: asked.stderr.trim().replace(`${folder}/bin/`, '') };
  };

  it('take the newest clang that is numbered 19 or more', () => {
    for (const version of ['18', '19', '21']) compilers(`-${version}`, `${version}.1.0`);
    compilers('', '18.1.0');
    expect(chosen()).toEqual({ failed: false, told: 'clang++-21' });
  });

  it('else plain clang, unless it is too old', () => {
    compilers('', '16.0.6');
    expect(chosen()).toEqual({ failed: false, told: 'clang++' });
    compilers('', '14.0.6');
    const { failed, told } = chosen();
    expect(failed).toBe(true);
    expect(told).toContain('14.0.6');
  });

  it('or what they are told', () => {
    compilers('-19', '19.1.0');
    expect(chosen('-DCMAKE_CXX_COMPILER=mine').told).toBe('mine');
  });

  it('configure, build and test by one name', () => {
    interface Preset {
      name: string;
      hidden?: boolean;
    }
    const presets = JSON.parse(read('CMakePresets.json')) as Record<
      'configurePresets' | 'buildPresets' | 'testPresets',
      Preset[]
    >;
    const names = (list: Preset[]) => list.filter(({ hidden }) => hidden !== true).map(({ name }) => name);
    // clang-tidy's groups of sources are configured only.
    const configured = names(presets.configurePresets).filter((name) => name !== 'tidy');
    expect(configured).toContain('release');
    expect(names(presets.buildPresets)).toEqual(configured);
    expect(names(presets.testPresets)).toEqual(configured);
  });

  it('name no version of it', () => {
    expect(read('CMakePresets.json')).not.toMatch(/clang\+*-\d/);
  });
});
